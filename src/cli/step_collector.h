// Collects the steps of an engine, to fit the costs of steps to them.
#pragma once

#include <mutex>
#include <vector>

#include "scheduler/fit_costs.h"
#include "scheduler/step_loop.h"

namespace valora::cli {

// A ServingEngine::StepProbe, which the engine calls on its own thread.
class StepCollector {
 public:
  void operator()(const scheduler::StepReport& report) {
    constexpr int kWarmUp = 6;  // steps that do not count
    if (report.run_seconds <= 0 || ++seen_ <= kWarmUp) return;
    const std::lock_guard lock(mutex_);
    steps_.push_back({report.shape, report.run_seconds});
    groups_.push_back(group_);
  }
  // The group of the steps that follow; 0 at first.
  void begin(size_t group) {
    const std::lock_guard lock(mutex_);
    group_ = group;
  }
  // In the order of their time.
  std::vector<scheduler::MeasuredStep> steps() const {
    const std::lock_guard lock(mutex_);
    return steps_;
  }
  // Of each of steps().
  std::vector<size_t> groups() const {
    const std::lock_guard lock(mutex_);
    return groups_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<scheduler::MeasuredStep> steps_;
  std::vector<size_t> groups_;
  size_t group_ = 0;
  int seen_ = 0;
};

}  // namespace valora::cli
