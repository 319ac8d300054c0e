// Step costs that follow the machine: the measured times of this process's steps correct the given
// costs, within bounds. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/costs/step_costs.h"

namespace valora::scheduler {

class LiveCosts {
 public:
  // The factors by which the costs may be corrected: [1 / kMostCorrection, kMostCorrection].
  static constexpr double kMostCorrection = 4;

  explicit LiveCosts(const StepCosts& costs) : costs_(costs) { errors_.reserve(kRemembered); }

  bool known() const { return costs_.known(); }
  // Seconds of the step without its merges and switches, and seconds of these alone.
  double running_seconds(const StepShape& shape) const;
  double weights_seconds(const StepShape& shape) const;
  double seconds(const StepShape& shape) const {
    return running_seconds(shape) + weights_seconds(shape);
  }

  // What a step costs apart from its tokens, and its tokens by kind, in seconds.
  struct Units {
    double step = 0, prefill_token = 0, decode_token = 0;
  };
  Units units() const;

  // Records the seconds of a step of this shape. One factor corrects all modes, so that their
  // measured order stays; another one corrects merges.
  void observe(const StepShape& shape, double seconds);

  struct Accuracy {
    uint64_t steps = 0;          // observed since the start
    double median = 0, p95 = 0;  // |predicted / taken - 1| of the last kRemembered steps
    double correction = 1;       // the factor of the running time
  };
  static constexpr size_t kRemembered = 256;
  Accuracy accuracy() const;

 private:
  StepCosts costs_;
  double log_running_ = 0, log_weights_ = 0;  // logarithms of the factors
  uint64_t steps_ = 0;
  std::vector<double> errors_;  // a ring of kRemembered
};

}  // namespace valora::scheduler
