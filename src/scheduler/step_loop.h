// One engine iteration: plan, execute, complete. Shared by serving and simulation; needs neither
// torch nor threads.
#pragma once

#include "base/clock.h"
#include "scheduler/progress_watch.h"
#include "scheduler/scheduler.h"
#include "scheduler/step_executor.h"

namespace valora::scheduler {

// Implemented by the owner of the requests. Its functions may call Scheduler::finish() for any
// request, and must not throw.
class StepListener {
 public:
  virtual ~StepListener() = default;
  // Called before the plan runs.
  virtual void on_planned(const StepPlan& plan) = 0;
  // A request yielded. Its previous tokens and all new ones but the last count as computed. Append
  // all new tokens, or finish the request.
  virtual void on_output(StepOutput& output) = 0;
  // The request failed: finish it.
  virtual void on_failed(Request& request, const Error& error) = 0;
};

struct StepReport {
  int tokens = 0;
  int sequences = 0;              // 0: nothing to run
  bool waits_for_copies = false;  // nothing can run until copies in progress finish
  double seconds = 0;
  double overhead_seconds = 0;  // time outside the executor
  // The step's cost to its requests: everything but StepExecutor::prepare(). 0 if it did not run
  // the whole plan, or a request has no result yet.
  double cost_seconds = 0;
  StepShape shape;
};

// If memory runs out during a step, requests fail and the loop continues. Before run(), the plan is
// abandoned and the request that needed the memory ends. If no single one did, the next plan may
// succeed; if it fails as well, the request admitted last ends, and so on. In run(), all requests
// of the step end; afterwards each output is handled on its own (StepListener).
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
  bool given_up_ = false;  // the last plan was abandoned, and no request ended for it
};

}  // namespace valora::scheduler
