#include "generator/train/optimizer.h"

#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace valora::generator {

struct Optimizer::Impl {
  at::Tensor values;
  torch::optim::AdamW adamw;

  Impl(at::Tensor leaf, const TrainingOptions& o)
      : values(std::move(leaf)),
        adamw({values}, torch::optim::AdamWOptions(o.learning_rate)
                            .betas({o.beta1, o.beta2})
                            .eps(o.epsilon)
                            .weight_decay(o.weight_decay)) {}

  torch::optim::AdamWParamState* state() {
    const auto found = adamw.state().find(values.unsafeGetTensorImpl());
    return found == adamw.state().end()
               ? nullptr
               : &static_cast<torch::optim::AdamWParamState&>(*found->second);
  }
};

Optimizer::Optimizer(const at::Tensor& values, at::Tensor gradient,
                     const TrainingOptions& options) {
  at::Tensor leaf = values.detach().set_requires_grad(true);  // the same memory
  leaf.mutable_grad() = std::move(gradient);
  impl_ = std::make_unique<Impl>(std::move(leaf), options);
}

Optimizer::~Optimizer() = default;

void Optimizer::step(double learning_rate) {
  for (auto& group : impl_->adamw.param_groups()) group.options().set_lr(learning_rate);
  impl_->adamw.step();
}

OptimizerState Optimizer::state() const {
  const auto* state = impl_->state();
  if (!state) return {};
  return {state->step(), state->exp_avg().clone(), state->exp_avg_sq().clone()};
}

void Optimizer::restore(const OptimizerState& state) {
  auto& states = impl_->adamw.state();
  states.erase(impl_->values.unsafeGetTensorImpl());
  if (!state.average.defined()) return;
  auto restored = std::make_unique<torch::optim::AdamWParamState>();
  restored->step(state.step);
  restored->exp_avg(state.average.clone());
  restored->exp_avg_sq(state.square_average.clone());
  states[impl_->values.unsafeGetTensorImpl()] = std::move(restored);
}

double cosine_rate(int64_t step, int64_t steps, int64_t warmup) {
  if (step < warmup)
    return static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, warmup));
  const double done = static_cast<double>(step - warmup) /
                      static_cast<double>(std::max<int64_t>(1, steps - warmup));
  return std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * done)));
}

}  // namespace valora::generator
