// Activation checkpointing: a part of a model that keeps its inputs alone and is run again on the
// way back.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace valora::ops {

using Part = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

// part(inputs), without what its operations would keep for their gradients. `part` must give the
// same both times and live, with all it refers to, until the gradients were taken. At least one
// input must want gradients; those of leaves inside `part` are added to their grad() directly.
std::vector<at::Tensor> recomputed(const Part& part, const std::vector<at::Tensor>& inputs);

}  // namespace valora::ops
