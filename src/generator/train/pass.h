// One forward and backward pass over a batch of examples.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "generator/train/adapter_parameters.h"
#include "generator/train/example.h"
#include "generator/train/visual_source.h"
#include "models/model.h"

namespace valora::generator {

// The divisors of a step's losses, summed over all of its passes, so that a token's weight does not
// depend on the pass it is in.
struct LossWeights {
  double answer_tokens = 0;  // sum of token weights
  double head_samples = 0;
};
LossWeights loss_weights(std::span<const Example* const> examples);

// The examples' tokens as a flat batch on the device, without visual embeddings or adapters.
models::Batch example_batch(const models::ModelSpec& spec, std::span<const Example* const> examples,
                            at::Device device);

struct PassOptions {
  ops::Dropout dropout{};
  bool recompute = false;
  int64_t logits_at_once = 0;  // TrainingOptions::logits_at_once
};

class TrainingPass {
 public:
  TrainingPass(const models::Model& model, at::ScalarType dtype, at::Device device,
               VisualSource& visuals)
      : model_(model), dtype_(dtype), device_(device), visuals_(visuals) {}

  // Returns the examples' contribution to the step's loss and accumulates its gradients in the
  // leaves of `parameters`. The loss is the sum of the cross-entropy of the answer tokens and that
  // of the head labels (binary, over all labels, for multi-label heads), each divided by its
  // divisor in `weights`.
  Result<double> run(std::span<const Example* const> examples, const AdapterParameters& parameters,
                     const LossWeights& weights, const PassOptions& options);

 private:
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
