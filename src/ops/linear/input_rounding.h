// How a checkpoint with quantised activations rounds a linear's inputs before the product. Rounded
// inputs stay in the compute dtype. Adapters use the unrounded inputs.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace valora::ops {

struct InputRounding {
  enum class Grid : uint8_t {
    kInt8,  // integers from -128 to 127
    kFp8,   // the finite values of F8_E4M3
  };
  Grid grid = Grid::kInt8;
  // 0: a scale per token, its largest absolute value divided by half the grid's width (127.5, 448).
  float scale = 0;
  bool operator==(const InputRounding&) const = default;
};

// The largest absolute value of each token, float [T, 1]. x: [T, in].
at::Tensor largest_inputs(const at::Tensor& x);
// x: [T, in] → the same shape and dtype. largest: largest_inputs() of the whole tokens, needed if x
// holds only a part of their inputs.
at::Tensor rounded_inputs(const at::Tensor& x, const InputRounding& rounding,
                          const at::Tensor& largest = {});

}  // namespace valora::ops
