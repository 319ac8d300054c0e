// One engine iteration: plan, execute, complete. The same code serves the model in real time and a
// cost function in simulated time; neither torch nor a thread is needed.
#pragma once

#include "base/clock.h"
#include "scheduler/scheduler.h"
#include "scheduler/step_executor.h"

namespace valora::scheduler {

// The owner of the requests. May call Scheduler::finish() for any request from within a call.
class StepListener {
 public:
  virtual ~StepListener() = default;
  // The plan is about to run.
  virtual void on_planned(const StepPlan& plan) = 0;
  // The request gave this output. Its tokens so far count as computed; append the new one, or
  // finish the request.
  virtual void on_output(StepOutput& output) = 0;
  // The request cannot go on; finish it.
  virtual void on_failed(Request& request, const Error& error) = 0;
};

struct StepReport {
  int tokens = 0;
  int sequences = 0;  // 0: there was nothing to run
  double seconds = 0;
  double overhead_seconds = 0;  // outside the executor
};

class StepLoop {
 public:
  // All of them outlive the loop.
  StepLoop(Scheduler& scheduler, StepExecutor& executor, StepListener& listener, const Clock& clock)
      : scheduler_(scheduler), executor_(executor), listener_(listener), clock_(clock) {}

  StepReport step();

 private:
  void drop_failed(StepPlan& plan, const std::vector<FailedRequest>& failed);
  Result<std::vector<StepOutput>> execute(StepPlan& plan);
  void fail(Request& request, const Error& error);
  void complete(const StepPlan& plan, Result<std::vector<StepOutput>>& outputs);

  Scheduler& scheduler_;
  StepExecutor& executor_;
  StepListener& listener_;
  const Clock& clock_;
};

}  // namespace valora::scheduler
