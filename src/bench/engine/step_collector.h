// Collects the steps of an engine, to fit the costs of steps to them.
#pragma once

#include <mutex>
#include <vector>

#include "scheduler/costs/fit_costs.h"
#include "scheduler/step_loop.h"

namespace valora::bench {

// A LocalEngine::StepProbe, which the engine calls on its own thread.
class StepCollector {
 public:
  void operator()(const scheduler::StepReport& report) {
    constexpr int kWarmUp = 6;  // steps that do not count
    if (report.cost_seconds <= 0 || ++seen_ <= kWarmUp) return;
    const std::lock_guard lock(mutex_);
    steps_.push_back({report.shape, report.cost_seconds});
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return steps_.size();
  }
  // In the order of their time.
  std::vector<scheduler::MeasuredStep> steps() const {
    const std::lock_guard lock(mutex_);
    return steps_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<scheduler::MeasuredStep> steps_;
  int seen_ = 0;
};

}  // namespace valora::bench
