// Step costs that adapt to the machine: measured times of this process's steps correct the given
// costs, within bounds. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/costs/step_costs.h"

namespace valora::scheduler {

class LiveCosts {
 public:
  // Corrections are limited to factors in [1 / kMostCorrection, kMostCorrection].
  static constexpr double kMostCorrection = 4;

  explicit LiveCosts(const StepCosts& costs) : costs_(costs) { errors_.reserve(kRemembered); }

  bool known() const { return costs_.known(); }
  // The step's seconds without merges and switches, and the seconds of merges and switches alone.
  double running_seconds(const StepShape& shape) const;
  double weights_seconds(const StepShape& shape) const;
  double seconds(const StepShape& shape) const {
    return running_seconds(shape) + weights_seconds(shape);
  }

  // Seconds of a step apart from its tokens, and seconds per token of each kind.
  struct Units {
    double step = 0, prefill_token = 0, decode_token = 0;
  };
  Units units() const;

  // Records the time of a step of this shape. One factor corrects all modes, which preserves their
  // measured order; another one corrects merges.
  void observe(const StepShape& shape, double seconds);

  struct Accuracy {
    uint64_t steps = 0;          // observed since the start
    double median = 0, p95 = 0;  // |predicted / taken - 1| over the last kRemembered steps
    double correction = 1;       // the factor of the running time
  };
  static constexpr size_t kRemembered = 256;
  Accuracy accuracy() const;

 private:
  StepCosts costs_;
  double log_running_ = 0, log_weights_ = 0;  // logarithms of the factors
  uint64_t steps_ = 0;
  std::vector<double> errors_;  // ring buffer of kRemembered
};

}  // namespace valora::scheduler
