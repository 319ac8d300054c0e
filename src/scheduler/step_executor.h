// StepExecutor runs a step's plan: with the model (engine/runner.h), or as a cost function in
// simulated time (sim/simulated_executor.h).
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "scheduler/sampled_token.h"
#include "scheduler/step_plan.h"

namespace valora::scheduler {

// The result of one item that yields.
struct StepOutput {
  Request* request = nullptr;
  // From the language-model head: one, or more if drafts were right. Each but the last equals the
  // draft in its place.
  std::vector<SampledToken> tokens;
  std::vector<float> values;   // instead: one logit per label of a task head, or an embedding
  std::optional<Error> error;  // set if this request failed; the others are valid
  bool waits = false;          // no result yet: a later step runs its last token again
};

// Called only by the thread of the step loop. prepare() and run() may throw std::bad_alloc: then
// prepare() is called again with another plan, and the requests of run() fail.
class StepExecutor {
 public:
  virtual ~StepExecutor() = default;
  // Whether prepare() has made what tokens [begin, end) of the request need besides themselves, or
  // knows that it cannot.
  virtual bool ready(const Request& /*request*/, int /*begin*/, int /*end*/) const { return true; }
  // Works on what StepPlan::preparing needs, e.g. the embeddings of images, for a time that does
  // not hold up the step, and keeps what its items need. What no request of the plan needs any more
  // is dropped. Returns the requests that cannot run; the other items can.
  virtual std::vector<FailedRequest> prepare(const StepPlan& plan) = 0;
  // Runs the step. One output per item that yields, in plan order. An error makes all results of
  // this step invalid; later steps may run.
  virtual Result<std::vector<StepOutput>> run(const StepPlan& plan) = 0;
};

}  // namespace valora::scheduler
