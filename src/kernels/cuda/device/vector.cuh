// Loads and stores of 16 bytes, or of single elements where memory is not aligned.
#pragma once

#include "kernels/cuda/device/scalar.cuh"

namespace valora::kernels::cuda {

template <typename T>
inline constexpr int kVector = 16 / static_cast<int>(sizeof(T));

// n: kVector<T> with p 16-byte aligned, or 1.
template <typename T, int n>
__device__ inline void load(const T* p, float (&values)[n]) {
  static_assert(n == 1 || n == kVector<T>);
  if constexpr (n == 1) {
    values[0] = to_float(*p);
  } else if constexpr (sizeof(T) == 4) {
    const float4 raw = *reinterpret_cast<const float4*>(p);
    values[0] = raw.x, values[1] = raw.y, values[2] = raw.z, values[3] = raw.w;
  } else {
    const uint4 raw = *reinterpret_cast<const uint4*>(p);
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 pair = unpack<T>(words[i]);
      values[2 * i] = pair.x, values[2 * i + 1] = pair.y;
    }
  }
}

template <typename T, int n>
__device__ inline void store(T* p, const float (&values)[n]) {
  static_assert(n == 1 || n == kVector<T>);
  if constexpr (n == 1) {
    *p = from_float<T>(values[0]);
  } else if constexpr (sizeof(T) == 4) {
    *reinterpret_cast<float4*>(p) = {values[0], values[1], values[2], values[3]};
  } else {
    *reinterpret_cast<uint4*>(p) = {pack<T>(values[0], values[1]), pack<T>(values[2], values[3]),
                                    pack<T>(values[4], values[5]), pack<T>(values[6], values[7])};
  }
}

}  // namespace valora::kernels::cuda
