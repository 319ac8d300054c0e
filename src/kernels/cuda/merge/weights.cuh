// The weights into which adapters are merged: floats, or integers, which are decoded.
#pragma once

#include "kernels/cuda/device/vector.cuh"
#include "kernels/cuda/merge.h"
#include "kernels/cuda/product/decode.cuh"
#include "kernels/types/packed.h"

namespace valora::kernels::cuda {

// Inputs [column, column + 8) of an output, as stored. column: a multiple of 8.
template <typename T, int kBits>
struct EightWeights {
  Eight<kBits> eight;

  __device__ void load(const MergeItem& item, int out, int column) {
    eight = load_eight<kBits>(item.integers, out, column);
  }
  // values = weights + coefficient · values
  __device__ void add(const MergeItem& item, int out, int column, float coefficient,
                      float (&values)[8]) const {
    const GroupOfPair group =
        group_of(item.integers, out / kStripOuts, column, out % kStripOuts / 2);
    const bool odd = out % 2 != 0;
    const float scale = odd ? group.scale.y : group.scale.x;
    const float least = odd ? group.least.y : group.least.x;
    float weights[8];
    decode<kBits>(eight, odd ? group.zero.y : group.zero.x, weights);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      values[i] = fmaf(coefficient, values[i], fmaf(weights[i], scale, least));
  }
};

template <typename T>
struct EightWeights<T, 0> {
  uint4 raw;

  __device__ void load(const MergeItem& item, int out, int column) {
    raw = *reinterpret_cast<const uint4*>(static_cast<const T*>(item.weight) +
                                          static_cast<int64_t>(out) * item.module.in + column);
  }
  __device__ void add(const MergeItem&, int, int, float coefficient, float (&values)[8]) const {
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 w = unpack<T>(words[i]);
      values[2 * i] = fmaf(coefficient, values[2 * i], w.x);
      values[2 * i + 1] = fmaf(coefficient, values[2 * i + 1], w.y);
    }
  }
};

// Calls body with the bits of a launch's weights as a std::integral_constant; 0: floats.
template <typename Body>
Status with_weights(int bits, const Body& body) {
  return bits == 0 ? body(std::integral_constant<int, 0>()) : with_bits(bits, body);
}

// One weight.
__device__ inline float decode_one(const IntegerMatrix& w, int out, int input) {
  const GroupOfPair group = group_of(w, out / kStripOuts, input, out % kStripOuts / 2);
  const bool odd = out % 2 != 0;
  const float zero = odd ? group.zero.y : group.zero.x, scale = odd ? group.scale.y : group.scale.x,
              least = odd ? group.least.y : group.least.x;
  const int i = input % 8;
  const uint32_t value = w.bits == 4 ? integer_of<4>(load_eight<4>(w, out, input), i)
                                     : integer_of<8>(load_eight<8>(w, out, input), i);
  return fmaf(static_cast<float>(value) - zero, scale, least);
}

}  // namespace valora::kernels::cuda
