// StepExecutor runs a step's plan: with the model (engine/runner.h), or as a cost function in
// simulated time (sim/simulated_executor.h).
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
  // Log probability before penalties and temperature; 0 if not requested.
  float logprob = 0;
  std::vector<RankedToken> top;  // most likely first
  bool last = false;             // nothing can follow it: the sequence ends
};

// The result of one item that yields.
struct StepOutput {
  Request* request = nullptr;
  SampledToken token;               // from the language-model head
  std::vector<float> label_logits;  // from a task head instead: one logit per label
  std::optional<Error> error;       // set if this request failed; the others are valid
};

// Called only by the thread of the step loop.
class StepExecutor {
 public:
  virtual ~StepExecutor() = default;
  // Prepares what the requests need besides their tokens, e.g. the embeddings of their images.
  // Returns the requests that cannot run; the others can.
  virtual std::vector<FailedRequest> prepare(const StepPlan& plan) = 0;
  // Runs the step. One output per item that yields, in plan order. An error makes all results of
  // this step invalid; later steps may run.
  virtual Result<std::vector<StepOutput>> run(const StepPlan& plan) = 0;
};

}  // namespace valora::scheduler
