// AdamW over an adapter's values in one piece (torch's own), with a state that can be written down.
// What a step does not touch, a head without samples in it, has a gradient of zero and coasts:
// zero_grad(set_to_none=False).
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "generator/train/options.h"

namespace valora::generator {

struct OptimizerState {
  int64_t step = 0;
  at::Tensor average, square_average;  // fp32, as the values; undefined before the first step
};

class Optimizer {
 public:
  // values, gradient: fp32 of one size, which the optimizer goes on reading and changing.
  Optimizer(at::Tensor values, at::Tensor gradient, const TrainingOptions& options);
  ~Optimizer();

  void step(double learning_rate);
  OptimizerState state() const;  // copies
  void restore(const OptimizerState& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace valora::generator
