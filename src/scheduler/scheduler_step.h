// The state of a Scheduler::plan() call, which several files work on.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "scheduler/scheduler.h"

namespace valora::scheduler {

struct Scheduler::Step {
  StepPlan plan;
  TimePoint now{};
  std::vector<Request*> order;
  size_t tail = 0;  // preemption candidates are before this index of `order`
  int budget = 0;
  bool short_of_memory = false;  // nothing more is admitted
  Request* refused = nullptr;    // the request that did not fit, if any
  std::vector<std::shared_ptr<Request>> preempted;
  std::vector<std::shared_ptr<Request>> admitted;
};

// What is served before a waiting request, first come, first served.
struct Scheduler::Ahead {
  double prefill = 0;  // seconds
  int requests = 0;    // waiting ones
};

// The requests of a queue, in its order.
inline std::vector<Request*> view(std::span<const std::shared_ptr<Request>> requests) {
  std::vector<Request*> pointers;
  pointers.reserve(requests.size());
  for (const auto& request : requests) pointers.push_back(request.get());
  return pointers;
}

}  // namespace valora::scheduler
