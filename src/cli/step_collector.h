// Collects the steps of an engine, to fit the costs of steps to them.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "scheduler/fit_costs.h"
#include "scheduler/step_loop.h"

namespace valora::cli {

// A ServingEngine::StepProbe, which the engine calls on its own thread.
class StepCollector {
 public:
  explicit StepCollector(size_t groups) : steps_(groups) {}

  void operator()(const scheduler::StepReport& report) {
    constexpr int kWarmUp = 6;  // steps that do not count
    if (report.run_seconds <= 0 || ++seen_ <= kWarmUp) return;
    const std::lock_guard lock(mutex_);
    steps_[group_].push_back({report.shape, report.run_seconds});
  }
  // The group of the steps that follow.
  void begin(size_t group) {
    const std::lock_guard lock(mutex_);
    group_ = group;
  }
  // Of each group.
  std::vector<std::vector<scheduler::MeasuredStep>> steps() const {
    const std::lock_guard lock(mutex_);
    return steps_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::vector<scheduler::MeasuredStep>> steps_;
  size_t group_ = 0;
  int seen_ = 0;
};

}  // namespace valora::cli
