// Runs a step's plan: the model (engine/runner.h), or a cost function in simulated time
// (sim/simulated_executor.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "scheduler/scheduler.h"

namespace valora::scheduler {

struct RankedToken {
  int32_t id = 0;
  float logprob = 0;
};

struct SampledToken {
  int32_t id = 0;
  float logprob = 0;  // of the model, before penalties and temperature; 0 if none is asked for
  std::vector<RankedToken> top;  // best first
};

// The result of one request that yields in a step.
struct StepOutput {
  Request* request = nullptr;
  SampledToken token;               // of the language-model head
  std::vector<float> label_logits;  // of a task head instead: one per label
  std::optional<Error> error;       // this request alone failed
};

struct FailedRequest {
  Request* request = nullptr;
  Error error;
};

// Called by one thread, that of the step loop.
class StepExecutor {
 public:
  virtual ~StepExecutor() = default;
  // Makes ready what the plan's requests need beside their tokens (the embeddings of their images).
  // Returns the requests that cannot run; the others go on.
  virtual std::vector<FailedRequest> prepare(const StepPlan& plan) = 0;
  // One output per item that yields, in plan order. An error: no result of this step can be
  // trusted, the executor itself can go on.
  virtual Result<std::vector<StepOutput>> run(const StepPlan& plan) = 0;
};

}  // namespace valora::scheduler
