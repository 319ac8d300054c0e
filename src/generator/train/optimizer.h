// torch's AdamW over all values of an adapter, with its state for checkpoints. Values that a step
// does not use, such as a head without samples, have a zero gradient, but momentum and weight decay
// still change them, as with zero_grad(set_to_none=False).
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

#include "generator/train/options.h"

namespace valora::generator {

struct OptimizerState {
  int64_t step = 0;
  // fp32, same shape as the values. Undefined before the first step.
  at::Tensor average, square_average;
};

class Optimizer {
 public:
  // values, gradient: fp32, same size. The optimizer shares their memory and updates `values` in
  // place.
  Optimizer(const at::Tensor& values, at::Tensor gradient, const TrainingOptions& options);
  ~Optimizer();

  void step(double learning_rate);
  OptimizerState state() const;  // a copy
  void restore(const OptimizerState& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The learning rate schedule: the factor on the maximum learning rate at step 0 … steps - 1: linear
// from 0 over `warmup` steps, then half a cosine down to 0 (get_cosine_schedule_with_warmup in
// transformers).
double cosine_rate(int64_t step, int64_t steps, int64_t warmup);

}  // namespace valora::generator
