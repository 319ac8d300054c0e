// Products of a strip on tensor cores. The integers are the left operand, so that as few as eight
// tokens suffice: rows g and g + 8 of a fragment are outputs 2g and 2g + 1 of a strip. A sum may
// take its terms in any order, so lane q takes inputs 8q to 8q + 7 of each step from both operands.
#pragma once

#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/product/decode.cuh"

namespace valora::kernels::cuda {

// One step of a strip, decoded.
struct StripFragments {
  uint32_t first[4], second[4];  // input pairs of outputs 2g and 2g + 1
  GroupOfPair group;
};

template <typename T, int kBits>
__device__ inline StripFragments decode_strip(const uint4& lane, int step,
                                              const GroupOfPair& group) {
  StripFragments f;
  decode<T, kBits>(eight_of<kBits>(lane, step, 0), group.zero.x, f.first);
  decode<T, kBits>(eight_of<kBits>(lane, step, 1), group.zero.y, f.second);
  f.group = group;
  return f;
}

// c = the sums of x over a step, for eight tokens, in every row.
template <typename T>
__device__ inline void sum_inputs(float (&c)[4], const uint4& x) {
  const uint32_t ones = pack<T>(1.0f, 1.0f);
  c[0] = c[1] = c[2] = c[3] = 0;
  mma<T>(c, ones, ones, ones, ones, x.x, x.y);
  mma<T>(c, ones, ones, ones, ones, x.z, x.w);
}

// sums += W x for a step and eight tokens. x: inputs 8q to 8q + 7 of token g. of_inputs: the result
// of sum_inputs, or zeros without minimums.
template <typename T, bool kMinimums>
__device__ inline void add_step(float (&sums)[4], const StripFragments& f, const uint4& x,
                                const float (&of_inputs)[4]) {
  float c[4] = {};
  mma<T>(c, f.first[0], f.second[0], f.first[1], f.second[1], x.x, x.y);
  mma<T>(c, f.first[2], f.second[2], f.first[3], f.second[3], x.z, x.w);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 &scale = f.group.scale, &least = f.group.least;
    sums[i] = fmaf(i < 2 ? scale.x : scale.y, c[i], sums[i]);
    if constexpr (kMinimums) sums[i] = fmaf(i < 2 ? least.x : least.y, of_inputs[i], sums[i]);
  }
}

}  // namespace valora::kernels::cuda
