// Stores keys and values in a cache in 8 bits, with one warp per token, head and side.
#include "kernels/cuda/attention/kv_bytes.cuh"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/reduce.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kMaxWarps = 8;
constexpr float kMostInt8 = 127, kMostFp8 = 448, kFp8Unit = 256;

template <typename T>
struct Arguments {
  uint8_t* layer;
  int64_t block_stride;
  const T *k, *v;
  int64_t k_stride, v_stride;
  const int64_t* slots;
  int kv_heads, dim;
  bool ints;
};

__device__ inline uint32_t warp_most(uint32_t v) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2)
    v = max(v, __shfl_xor_sync(kAllLanes, v, offset));
  return v;
}

// Rounds to nearest, ties to even. The scale in bf16 may be smaller than the exact one, so the
// largest value, once scaled, may slightly exceed that of the last code.
__device__ inline uint8_t code_of(float y, bool ints) {
  if (ints)
    return static_cast<uint8_t>(
        static_cast<int32_t>(rintf(fminf(fmaxf(y, -kMostInt8), kMostInt8))));
  constexpr uint32_t kLeastNormal = (127 - 6) << 23;
  constexpr float kToSubnormals = 1 << (23 - 9);  // adding it rounds to a multiple of 2^-9
  const uint32_t sign = __float_as_uint(y) >> 31 << 7;
  const float size = fminf(fabsf(y), kMostFp8);
  const uint32_t bits = __float_as_uint(size);
  const uint32_t normal = ((bits + 0x7ffffu + (bits >> 20 & 1u)) >> 20) - ((127 - 7) << 3);
  const uint32_t small = __float_as_uint(size + kToSubnormals) & 0xffu;
  return static_cast<uint8_t>(sign | (bits < kLeastNormal ? small : normal));
}

// The factor that turns a vector into codes, 0 if all its codes are zeros, and its scale. most: the
// vector's largest magnitude as bits, which order NaN above all numbers.
struct Rounding {
  float inverse;
  bf16 scale;
};
__device__ inline Rounding rounding_of(uint32_t most, bool ints) {
  constexpr uint32_t kInfinite = 0x7f800000u, kLeastNormal = 0x00800000u;
  const bf16 scale =
      from_float<bf16>(__uint_as_float(most) / (ints ? kMostInt8 : kMostFp8 / kFp8Unit));
  const float exact = to_float(scale);
  const uint32_t size = __float_as_uint(exact);
  const float inverse = (ints ? 1.0f : kFp8Unit) / exact;
  if (most >= kInfinite || size >= kInfinite)
    return {0, from_float<bf16>(__uint_as_float(0x7fc00000u))};
  if (size < kLeastNormal || __float_as_uint(inverse) >= kInfinite)
    return {0, from_float<bf16>(0.0f)};
  return {inverse, scale};
}

// blockIdx.x: token; blockIdx.y: 0 for K, 1 for V.
template <typename T>
__global__ void __launch_bounds__(kMaxWarps* kWarpSize) store_bytes_kernel(Arguments<T> a) {
  wait_for_earlier_launch();
  const int64_t token = blockIdx.x, slot = a.slots[token];
  if (slot < 0) return;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int warps = static_cast<int>(blockDim.x) / kWarpSize;
  const int row = static_cast<int>(blockIdx.y * kBlockTokens + slot % kBlockTokens);
  uint8_t* const layer = a.layer + slot / kBlockTokens * a.block_stride;
  const T* const from = blockIdx.y == 0 ? a.k + token * a.k_stride : a.v + token * a.v_stride;
  for (int head = warp; head < a.kv_heads; head += warps) {
    const T* const x = from + static_cast<int64_t>(head) * a.dim;
    uint32_t most = 0;
    for (int i = lane; i < a.dim; i += kWarpSize)
      most = max(most, __float_as_uint(fabsf(to_float(x[i]))));
    const Rounding rounding = rounding_of(warp_most(most), a.ints);
    uint8_t* const codes = layer + (static_cast<int64_t>(row) * a.kv_heads + head) * a.dim;
    for (int i = lane; i < a.dim; i += kWarpSize)
      codes[i] = rounding.inverse == 0 ? 0 : code_of(to_float(x[i]) * rounding.inverse, a.ints);
    if (lane == 0)
      *const_cast<bf16*>(scale_at(layer, row, head, a.kv_heads, a.dim)) = rounding.scale;
  }
}

}  // namespace

Status store_kv_bytes(const KvCache& cache, TokenRows k, TokenRows v, const int64_t* slots,
                      int64_t tokens, Stream stream) {
  return with_type(cache.dtype, [&](auto type) {
    using T = decltype(type);
    const Arguments<T> arguments{static_cast<uint8_t*>(cache.pool) + cache.layer_offset,
                                 cache.block_stride,
                                 static_cast<const T*>(k.data),
                                 static_cast<const T*>(v.data),
                                 k.token_stride,
                                 v.token_stride,
                                 slots,
                                 cache.kv_heads,
                                 cache.dim,
                                 cache.format == KvFormat::kInt8};
    const int warps = cache.kv_heads < kMaxWarps ? cache.kv_heads : kMaxWarps;
    return launch(store_bytes_kernel<T>, dim3(static_cast<unsigned>(tokens), 2), warps * kWarpSize,
                  0, stream, arguments);
  });
}

}  // namespace valora::kernels::cuda
