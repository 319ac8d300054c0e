// Attention without tensor cores, for any dtype and dim. Built for correctness, not speed; one
// thread block computes one query of one head.
#include "kernels/cuda/attention/kv_bytes.cuh"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/shared.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kMaxDim = 256;
constexpr int kPerLane = kMaxDim / kWarpSize;

template <typename T>
struct Arguments {
  const T* layer;
  const uint8_t* codes;  // the layer, if the cache is in 8 bits
  int64_t block_stride;
  const T* q;
  int64_t q_stride;
  T* out;
  const DeviceSpan* spans;
  const int32_t* block_tables;
  const AttentionTile* tiles;
  const int32_t* ends;  // as in FlashArguments
  int heads, kv_heads, dim;
  int window;  // 0: none
  float scale;
  bool ints;  // the codes are integers
};

// Element `at` of the layer, but for its scale.
template <bool kCodes, typename T>
__device__ float element_of(const Arguments<T>& a, int64_t at) {
  if constexpr (kCodes)
    return number_of(a.codes[at], a.ints);
  else
    return to_float(a.layer[at]);
}

// Warps take turns at runs of 32 keys. Each lane handles one key for the scores, and every 32nd
// element of a row for the sums.
template <typename T, bool kCodes>
// NOLINTNEXTLINE(readability-function-size): one pipeline over shared memory
__global__ void __launch_bounds__(kWarps* kWarpSize) plain_kernel(Arguments<T> a) {
  wait_for_earlier_launch();
  VALORA_SHARED(float, query, [kMaxDim]);
  VALORA_SHARED(float, sums, [kWarps][kMaxDim]);
  VALORA_SHARED(float, maxima, [kWarps]);
  VALORA_SHARED(float, weights, [kWarps]);
  const AttentionTile tile = a.tiles[blockIdx.x / a.heads];
  if (tile.span < 0) return;
  const int head = blockIdx.x % a.heads;
  const DeviceSpan span = a.spans[tile.span];
  const int64_t token = span.begin + tile.first_query;
  const int position = span.context + tile.first_query;
  const int begin = a.window > 0 ? max(position - a.window + 1, 0) : 0;
  const int keys = a.ends != nullptr ? a.ends[token] : position + 1;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int kv_head = head / (a.heads / a.kv_heads);
  const int64_t row = static_cast<int64_t>(a.kv_heads) * a.dim;
  for (int i = threadIdx.x; i < a.dim; i += blockDim.x)
    query[i] = to_float(a.q[token * a.q_stride + static_cast<int64_t>(head) * a.dim + i]);
  __syncthreads();

  float sum[kPerLane] = {}, largest = -INFINITY, weight = 0;
  for (int first = begin + warp * kWarpSize; first < keys; first += kWarps * kWarpSize) {
    const int key = first + lane;
    int64_t at = 0;
    float score = -INFINITY, value_scale = 1;
    if (key < keys) {
      const int64_t block = a.block_tables[span.first_block + key / static_cast<int>(kBlockTokens)];
      at =
          block * a.block_stride + key % kBlockTokens * row + static_cast<int64_t>(kv_head) * a.dim;
      score = 0;
      for (int i = 0; i < a.dim; ++i) score += query[i] * element_of<kCodes>(a, at + i);
      score *= a.scale;
      if constexpr (kCodes) {
        const uint8_t* const layer = a.codes + block * a.block_stride;
        const int slot = key % static_cast<int>(kBlockTokens);
        score *= to_float(*scale_at(layer, slot, kv_head, a.kv_heads, a.dim));
        value_scale = to_float(
            *scale_at(layer, static_cast<int>(kBlockTokens) + slot, kv_head, a.kv_heads, a.dim));
      }
    }
    // The first lane always has a key, so the new maximum is finite.
    const float maximum = fmaxf(largest, warp_max(score));
    const float shrink = expf(largest - maximum), p = expf(score - maximum);
    weight = weight * shrink + warp_sum(p);
    largest = maximum;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) sum[i] *= shrink;
    const int count = min(kWarpSize, keys - first);
    for (int j = 0; j < count; ++j) {
      const float pj = __shfl_sync(kAllLanes, kCodes ? p * value_scale : p, j);
      const int64_t value = __shfl_sync(kAllLanes, at, j) + kBlockTokens * row;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i)
        if (lane + i * kWarpSize < a.dim)
          sum[i] += pj * element_of<kCodes>(a, value + lane + i * kWarpSize);
    }
  }
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) sums[warp][lane + i * kWarpSize] = sum[i];
  if (lane == 0) maxima[warp] = largest, weights[warp] = weight;
  __syncthreads();

  float maximum = -INFINITY, total = 0;
  for (int w = 0; w < kWarps; ++w) maximum = fmaxf(maximum, maxima[w]);
  for (int w = 0; w < kWarps; ++w) total += weights[w] * expf(maxima[w] - maximum);
  for (int i = threadIdx.x; i < a.dim; i += blockDim.x) {
    float value = 0;
    for (int w = 0; w < kWarps; ++w) value += sums[w][i] * expf(maxima[w] - maximum);
    a.out[(token * a.heads + head) * a.dim + i] = from_float<T>(value / total);
  }
}

}  // namespace

Status plain_attention(const AttentionCall& call) {
  if (call.sizes.tiles == 0) return cudaSuccess;
  return with_type(call.cache.dtype, [&](auto type) {
    using T = decltype(type);
    const KvCache& cache = call.cache;
    const Arguments<T> arguments{static_cast<const T*>(cache.pool) + cache.layer_offset,
                                 static_cast<const uint8_t*>(cache.pool) + cache.layer_offset,
                                 cache.block_stride,
                                 static_cast<const T*>(call.q.data),
                                 call.q.token_stride,
                                 static_cast<T*>(call.out),
                                 call.tables.spans,
                                 call.tables.block_tables,
                                 call.tables.tiles,
                                 call.tables.ends,
                                 call.heads,
                                 cache.kv_heads,
                                 cache.dim,
                                 window_of(call),
                                 static_cast<float>(call.rule.scale_of(cache.dim)),
                                 cache.format == KvFormat::kInt8};
    const auto blocks = static_cast<unsigned>(call.sizes.tiles) * call.heads;
    return in_bytes(cache.format) ? launch(plain_kernel<T, true>, blocks, kWarps * kWarpSize, 0,
                                           call.stream, arguments)
                                  : launch(plain_kernel<T, false>, blocks, kWarps * kWarpSize, 0,
                                           call.stream, arguments);
  });
}

}  // namespace valora::kernels::cuda
