// Collects an engine's steps, so that step costs can be fitted to them.
#pragma once

#include <mutex>
#include <vector>

#include "scheduler/costs/fit_costs.h"
#include "scheduler/step_loop.h"

namespace valora::tuning {

// A LocalEngine::StepProbe, called on the engine's own thread.
class StepCollector {
 public:
  void operator()(const scheduler::StepReport& report) {
    constexpr int kWarmUp = 6;  // number of initial steps that are ignored
    if (report.cost_seconds <= 0 || ++seen_ <= kWarmUp) return;
    const std::lock_guard lock(mutex_);
    steps_.push_back({report.shape, report.cost_seconds});
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return steps_.size();
  }
  // In order of time.
  std::vector<scheduler::MeasuredStep> steps() const {
    const std::lock_guard lock(mutex_);
    return steps_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<scheduler::MeasuredStep> steps_;
  int seen_ = 0;
};

}  // namespace valora::tuning
