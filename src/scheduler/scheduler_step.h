// The state of a Scheduler::plan() call.
#pragma once

#include <memory>
#include <vector>

#include "scheduler/scheduler.h"

namespace valora::scheduler {

struct Scheduler::Step {
  StepPlan plan;
  std::vector<Request*> order;
  size_t tail = 0;  // preemption candidates are before this index of `order`
  int budget = 0;
  bool short_of_memory = false;  // nothing more is admitted
  Request* refused = nullptr;    // the request that did not fit, if any
  std::vector<std::shared_ptr<Request>> preempted;
  std::vector<std::shared_ptr<Request>> admitted;
};

}  // namespace valora::scheduler
