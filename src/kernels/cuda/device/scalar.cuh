// Element types and their conversions. Kernels compute in fp32 and round to nearest even.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace valora::kernels::cuda {

using bf16 = __nv_bfloat16;
using fp16 = __half;

__device__ inline float to_float(float v) { return v; }
__device__ inline float to_float(bf16 v) { return __bfloat162float(v); }
__device__ inline float to_float(fp16 v) { return __half2float(v); }

template <typename T>
__device__ T from_float(float v);
template <>
__device__ inline float from_float<float>(float v) {
  return v;
}
template <>
__device__ inline bf16 from_float<bf16>(float v) {
  return __float2bfloat16_rn(v);
}
template <>
__device__ inline fp16 from_float<fp16>(float v) {
  return __float2half_rn(v);
}

// Two 16-bit values in one register, the first in the low half.
template <typename T>
__device__ uint32_t pack(float first, float second);
template <>
__device__ inline uint32_t pack<bf16>(float first, float second) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
template <>
__device__ inline uint32_t pack<fp16>(float first, float second) {
  const __half2 pair = __floats2half2_rn(first, second);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// a - b for both values, rounded.
template <typename T>
__device__ uint32_t subtract(uint32_t a, uint32_t b);
template <>
__device__ inline uint32_t subtract<bf16>(uint32_t a, uint32_t b) {
  const __nv_bfloat162 pair = __hsub2(*reinterpret_cast<const __nv_bfloat162*>(&a),
                                      *reinterpret_cast<const __nv_bfloat162*>(&b));
  return *reinterpret_cast<const uint32_t*>(&pair);
}
template <>
__device__ inline uint32_t subtract<fp16>(uint32_t a, uint32_t b) {
  const __half2 pair =
      __hsub2(*reinterpret_cast<const __half2*>(&a), *reinterpret_cast<const __half2*>(&b));
  return *reinterpret_cast<const uint32_t*>(&pair);
}

template <typename T>
__device__ float2 unpack(uint32_t pair);
template <>
__device__ inline float2 unpack<bf16>(uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
}
template <>
__device__ inline float2 unpack<fp16>(uint32_t pair) {
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}

}  // namespace valora::kernels::cuda
