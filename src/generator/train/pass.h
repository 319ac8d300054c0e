// One forward pass over examples side by side, and their losses.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "generator/train/adapter_parameters.h"
#include "generator/train/example.h"
#include "generator/train/visual_source.h"
#include "models/model.h"

namespace valora::generator {

// What a step's losses are divided by, over all of its passes: a token counts as much whichever
// pass it is in.
struct LossWeights {
  double answer_tokens = 0;  // weighted
  double head_samples = 0;
};
LossWeights loss_weights(std::span<const Example* const> examples);

struct PassOptions {
  ops::Dropout dropout{};
  bool recompute = false;
  int64_t logits_at_once = 0;  // elements
};

class TrainingPass {
 public:
  TrainingPass(const models::Model& model, at::ScalarType dtype, at::Device device,
               VisualSource& visuals)
      : model_(model), dtype_(dtype), device_(device), visuals_(visuals) {}

  // The examples' share of the step's loss: cross-entropy of the answers' tokens, and of the heads'
  // labels (of multi-label heads binary, over all labels), each divided by its weight over the
  // step, added up. backward() leaves the gradients in the parameters' leaves. → the loss
  Result<double> run(std::span<const Example* const> examples, const AdapterParameters& parameters,
                     const LossWeights& weights, const PassOptions& options);

 private:
  models::Batch batch_of(std::span<const Example* const> examples,
                         const AdapterParameters& parameters) const;
  at::Tensor answer_loss(std::span<const Example* const> examples, const at::Tensor& hidden,
                         double weight, int64_t logits_at_once) const;
  at::Tensor head_loss(std::span<const Example* const> examples,
                       const AdapterParameters& parameters, const at::Tensor& hidden,
                       double weight) const;

  const models::Model& model_;
  at::ScalarType dtype_;
  at::Device device_;
  VisualSource& visuals_;
};

}  // namespace valora::generator
