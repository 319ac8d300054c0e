// Activation checkpointing: a part of a model saves only its inputs and is recomputed in the
// backward pass.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace valora::ops {

using Part = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

// Returns part(inputs) without saving the activations of its operations. `part` must be
// deterministic; it and everything it refers to must live until the backward pass ends. At least
// one input must require gradients. Gradients of leaves inside `part` are accumulated directly into
// their grad().
std::vector<at::Tensor> recomputed(const Part& part, const std::vector<at::Tensor>& inputs);

}  // namespace valora::ops
