// Weights of linears with the same input side by side in memory, so that a GPU multiplies them in
// one product.
#pragma once

#include <optional>
#include <span>

#include "ops/linear.h"

namespace valora::ops {

// Moves the values of the weights into one tensor, the rows of one after those of the other, and
// their biases into another; each weight is a part of both afterwards, and is written, merged and
// multiplied as before. Only weights that the kernels of a GPU read: others stay where they are,
// and so do those with different inputs, those of which some have a bias, and those that would not
// begin 64-byte aligned. Needs memory for a copy of them meanwhile.
void place_adjacent(std::span<Weight* const> weights);

// Such weights as one.
struct AdjacentWeights {
  at::Tensor weight, bias;  // [all outputs, in]; [all outputs], undefined without biases
};
// Absent if one is not right behind the other.
std::optional<AdjacentWeights> as_one(std::span<const ModuleWeight> linears);

}  // namespace valora::ops
