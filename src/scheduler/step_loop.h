// One engine iteration: plan, execute, complete. Serving and simulation use the same loop; it needs
// neither torch nor threads.
#pragma once

#include "base/clock.h"
#include "scheduler/scheduler.h"
#include "scheduler/step_executor.h"

namespace valora::scheduler {

// Implemented by the owner of the requests. Its functions may call Scheduler::finish() for any
// request.
class StepListener {
 public:
  virtual ~StepListener() = default;
  // Called before the plan runs.
  virtual void on_planned(const StepPlan& plan) = 0;
  // A request yielded. Its tokens so far count as computed: append the new token, or finish the
  // request.
  virtual void on_output(StepOutput& output) = 0;
  // The request failed: finish it.
  virtual void on_failed(Request& request, const Error& error) = 0;
};

struct StepReport {
  int tokens = 0;
  int sequences = 0;              // 0: nothing to run
  bool waits_for_copies = false;  // nothing to run until copies under way end
  double seconds = 0;
  double overhead_seconds = 0;  // time outside the executor
  double run_seconds = 0;       // of StepExecutor::run(), if it ran the whole plan
  StepShape shape;
};

class StepLoop {
 public:
  // All arguments must outlive the loop.
  StepLoop(Scheduler& scheduler, StepExecutor& executor, StepListener& listener, const Clock& clock)
      : scheduler_(scheduler), executor_(executor), listener_(listener), clock_(clock) {}

  StepReport step();

 private:
  void drop_failed(StepPlan& plan, const std::vector<FailedRequest>& failed);
  void fail(Request& request, const Error& error);
  void complete(const StepPlan& plan, Result<std::vector<StepOutput>>& outputs);

  Scheduler& scheduler_;
  StepExecutor& executor_;
  StepListener& listener_;
  const Clock& clock_;
};

}  // namespace valora::scheduler
