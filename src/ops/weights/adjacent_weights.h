// Places the weights of linears with the same input next to each other in memory, so that a GPU
// computes them as one product.
#pragma once

#include <optional>
#include <span>

#include "ops/linear/linear.h"

namespace valora::ops {

// Moves the weights' values into one tensor, each weight's rows after those of the previous one,
// and their biases into another. Each weight is then a view of both, and is written, merged and
// multiplied as before. Does nothing unless all weights are floats that GPU kernels read, have the
// same inputs, all or none have a bias, and each would begin 64-byte aligned. Temporarily needs
// memory for a copy of the weights.
void place_adjacent(std::span<Weight* const> weights);

// Such weights viewed as one.
struct AdjacentWeights {
  at::Tensor weight, bias;  // [all outputs, in]; [all outputs], undefined without biases
};
// nullopt unless each weight directly follows the one before it.
std::optional<AdjacentWeights> as_one(std::span<const ModuleWeight> linears);

}  // namespace valora::ops
