// One engine iteration: plan, execute, complete. Serving and simulation use the same loop; it needs
// neither torch nor threads.
#pragma once

#include "base/clock.h"
#include "scheduler/progress_watch.h"
#include "scheduler/scheduler.h"
#include "scheduler/step_executor.h"

namespace valora::scheduler {

// Implemented by the owner of the requests. Its functions may call Scheduler::finish() for any
// request. They do not throw.
class StepListener {
 public:
  virtual ~StepListener() = default;
  // Called before the plan runs.
  virtual void on_planned(const StepPlan& plan) = 0;
  // A request yielded. Its tokens so far count as computed, and the new ones but the last: append
  // all new tokens, or finish the request.
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
  // What the step cost its requests: all of it but StepExecutor::prepare(). 0 if it did not run the
  // whole plan, or a request waits for its result.
  double cost_seconds = 0;
  StepShape shape;
};

// Where memory ends in the middle of a step, requests fail, and the loop goes on. Before run(), the
// plan is given up, and the request ends that asked for the memory. If none did, the next plan may
// find some again; if it does not, the request ends that was admitted last, and so on. In run() the
// requests of the step end; afterwards each output stands alone (StepListener).
class StepLoop {
 public:
  // All arguments must outlive the loop.
  StepLoop(Scheduler& scheduler, StepExecutor& executor, StepListener& listener, const Clock& clock)
      : scheduler_(scheduler), executor_(executor), listener_(listener), clock_(clock) {}

  StepReport step();
  Progress progress() const;

 private:
  struct Begun;

  void begin(Begun& step);
  void give_up();
  Result<std::vector<StepOutput>> run(const StepPlan& plan);
  void drop_failed(StepPlan& plan, const std::vector<FailedRequest>& failed);
  void fail(Request& request, const Error& error);
  void complete(StepPlan& plan, Result<std::vector<StepOutput>>& outputs);

  Scheduler& scheduler_;
  StepExecutor& executor_;
  StepListener& listener_;
  const Clock& clock_;
  uint64_t done_ = 0;      // Progress::steps
  bool given_up_ = false;  // the last plan was, and no request ended for it
};

}  // namespace valora::scheduler
