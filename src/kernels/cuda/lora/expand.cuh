// The low-rank products of an expand with tensor cores. Fragments are loaded directly from global
// memory, as in shrink.cu. Their columns are interleaved so that each lane has 8 consecutive
// outputs of a row.
#pragma once

#include <type_traits>

#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/lora/arguments.cuh"

namespace valora::kernels::cuda {

inline constexpr int kGroupOuts = kCudaGroupOuts;
inline constexpr int kGroupColumns = kGroupOuts / 8;  // fragments
inline constexpr int kStep = 32;                      // ranks per pair of products

// bf16 has the range of fp32. For fp16, values are scaled by powers of two to stay within its
// range.
template <typename T>
inline constexpr bool kScaled = std::is_same_v<T, fp16>;

// 8 values of the rank-wide intermediate, each as the sum of two 16-bit numbers, high + low. This
// preserves at least 16 bits of precision, so in effect only y is rounded.
struct SplitValues {
  uint32_t high[4], low[4];
};

template <typename T>
__device__ SplitValues split_values(const float (&values)[8]) {
  SplitValues split;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float first = values[2 * i], second = values[2 * i + 1];
    split.high[i] = pack<T>(first, second);
    const float2 high = unpack<T>(split.high[i]);
    split.low[i] = pack<T>(first - high.x, second - high.y);
  }
  return split;
}

// Multiplies a row's 8 values in each of its four lanes by a power of two that brings the largest
// into [2^12, 2^13). → the factor that reverses this on sums of their products.
__device__ inline float scale_row(float (&values)[8]) {
  constexpr int kBias = 127, kExponent = 12;
  float largest = 0;
#pragma unroll
  for (const float v : values) largest = fmaxf(largest, fabsf(v));
  largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
  largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
  // Both powers of two must be normal numbers.
  const int exponent = static_cast<int>(__float_as_uint(largest) >> 23) - kBias - kExponent;
  const int shift = min(max(exponent, 2 - kBias), kBias - 2);
  const float scale = __uint_as_float(static_cast<uint32_t>(kBias - shift) << 23);
#pragma unroll
  for (float& v : values) v *= scale;
  return __uint_as_float(static_cast<uint32_t>(kBias + shift) << 23);
}

// Ranks [k, k + 8) of a row, summed over the splits; zeros if not valid. kScaled: also scaled by
// scale_row(), and `scale` becomes its result times factor. Otherwise multiplied by factor.
template <typename T>
__device__ SplitValues load_low(const LoraArguments<T>& a, int slice, int row, int k, bool valid,
                                float factor, float& scale) {
  float values[8] = {};
  if (valid)
    for (int split = 0; split < a.splits; ++split) {
      const auto* from = reinterpret_cast<const float4*>(low_row(a, slice, split, row) + k);
      const float4 first = from[0], second = from[1];
      values[0] += first.x, values[1] += first.y, values[2] += first.z, values[3] += first.w;
      values[4] += second.x, values[5] += second.y, values[6] += second.z, values[7] += second.w;
    }
  if constexpr (kScaled<T>) {
    scale = scale_row(values) * factor;
  } else {
#pragma unroll
    for (float& v : values) v *= factor;
  }
  return split_values<T>(values);
}

// sums += low · w, for two rows of low and 8 outputs.
template <typename T>
__device__ void add_products(float (&sums)[4], const SplitValues (&low)[2], const uint4& w,
                             const float (&scales)[2]) {
  const SplitValues &top = low[0], &bottom = low[1];
  float scaled[4] = {};
  float (&sum)[4] = kScaled<T> ? scaled : sums;
  mma<T>(sum, top.low[0], bottom.low[0], top.low[1], bottom.low[1], w.x, w.y);
  mma<T>(sum, top.low[2], bottom.low[2], top.low[3], bottom.low[3], w.z, w.w);
  mma<T>(sum, top.high[0], bottom.high[0], top.high[1], bottom.high[1], w.x, w.y);
  mma<T>(sum, top.high[2], bottom.high[2], top.high[3], bottom.high[3], w.z, w.w);
  if constexpr (kScaled<T>) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] = fmaf(scaled[i], scales[i / 2], sums[i]);
  }
}

// Ranks [k, k + 8) of row n of B, with zeros beyond the end.
template <typename T>
__device__ uint4 load_ranks(const DeviceLoraModule& module, int n, int k) {
  if (k >= module.rank) return {};
  const T* row = factor_row<T>(module.b, n, module.rank);
  if (module.rank % 8 == 0) return __ldg(reinterpret_cast<const uint4*>(row + k));
  float values[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) values[i] = k + i < module.rank ? to_float(row[k + i]) : 0.0f;
  return {pack<T>(values[0], values[1]), pack<T>(values[2], values[3]),
          pack<T>(values[4], values[5]), pack<T>(values[6], values[7])};
}

// The sums of a warp's tile: kBands bands of 16 tokens, kGroups groups of kGroupOuts outputs.
template <int kBands, int kGroups>
struct ExpandSums {
  float of[kBands][kGroups][kGroupColumns][4];

  // Row g + 8 r of band b: outputs [8 q, 8 q + 8) of a group.
  __device__ void get(int b, int r, int group, float (&values)[8]) const {
#pragma unroll
    for (int j = 0; j < kGroupColumns; ++j)
      values[2 * j] = of[b][group][j][2 * r], values[2 * j + 1] = of[b][group][j][2 * r + 1];
  }
};

// sums += the low-rank products of all segments that cover the tile, for outputs [first_out, ..) of
// a slice. → false if none of them touches it.
template <typename T, int kBands, int kGroups>
__device__ bool add_segments(const LoraArguments<T>& a, const LoraExpandTile& tile, int slice,
                             int first_out, ExpandSums<kBands, kGroups>& sums) {
  const int outs = a.out[slice];
  const int lane = threadIdx.x % kWarpSize, g = lane / 4, q = lane % 4;
  bool touched = false;
  for (int c = 0; c < tile.covers; ++c) {
    const DeviceLoraSegment segment = a.tables.segments[a.tables.covers[tile.first_cover + c]];
    const DeviceLoraModule module = module_of(segment, a.module[slice]);
    if (module.rank == 0) continue;
    touched = true;
    const float factor = segment.coefficient * module.scale;
    const int first_row = segment.first_row + tile.token_begin - segment.token_begin;
    for (int k0 = 0; k0 < module.rank; k0 += kStep) {
      const int k = k0 + q * 8;
      SplitValues low[kBands][2];
      float scales[kBands][2];
#pragma unroll
      for (int b = 0; b < kBands; ++b)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int row = b * 16 + r * 8 + g;
          low[b][r] = load_low(a, slice, first_row + row, k, row < tile.tokens && k < module.rank,
                               factor, scales[b][r]);
        }
#pragma unroll
      for (int group = 0; group < kGroups; ++group)
#pragma unroll
        for (int j = 0; j < kGroupColumns; ++j) {
          const int n = first_out + group * kGroupOuts + g / 2 * 8 + j * 2 + g % 2;
          const uint4 w = n < outs ? load_ranks<T>(module, n, k) : uint4{};
#pragma unroll
          for (int b = 0; b < kBands; ++b)
            add_products<T>(sums.of[b][group][j], low[b], w, scales[b]);
        }
    }
  }
  return touched;
}

// values[0, count) of a row, count at most 8. vectors: count is 8 and 16-byte accesses are allowed.
template <typename T>
__device__ void load_row(const T* y, int count, bool vectors, float (&values)[8]) {
  if (vectors) return load<T, 8>(y, values);
#pragma unroll
  for (int i = 0; i < 8; ++i) values[i] = i < count ? to_float(y[i]) : 0.0f;
}
template <typename T>
__device__ void store_row(T* y, int count, bool vectors, const float (&values)[8]) {
  if (vectors) return store<T, 8>(y, values);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (i < count) y[i] = from_float<T>(values[i]);
}

// Eight floats, of which `count` exist.
__device__ inline void load_floats(const float* from, int count, bool vectors, float (&values)[8]) {
  if (vectors) {
    const auto* vector = reinterpret_cast<const float4*>(from);
    const float4 first = vector[0], second = vector[1];
    values[0] = first.x, values[1] = first.y, values[2] = first.z, values[3] = first.w;
    values[4] = second.x, values[5] = second.y, values[6] = second.z, values[7] = second.w;
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) values[i] = i < count ? from[i] : 0.0f;
}

// sums += what they are added to: outputs [out, ..) of a slice's token before rounding.
template <typename T>
__device__ void add_base(const LoraArguments<T>& a, int slice, int64_t token, int out,
                         float (&sums)[8]) {
  const int outs = a.out[slice], count = outs - out;
  const bool vectors = a.y_vectors[slice];
  float base[8];
  if (a.sums[slice] == nullptr) {
    load_row(a.y[slice] + token * a.y_stride[slice] + out, count, vectors, base);
  } else {
    const float* from = a.sums[slice] + token * outs + out;
    load_floats(from, count, vectors, base);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) sums[i] += base[i];
}

}  // namespace valora::kernels::cuda
