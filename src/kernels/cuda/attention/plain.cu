// Attention without tensor cores: any dtype, any dim. Built for right answers; one thread block
// computes one query of one head.
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
  int64_t block_stride;
  const T* q;
  int64_t q_stride;
  T* out;
  const DeviceSpan* spans;
  const int32_t* block_tables;
  const AttentionTile* tiles;
  int heads, kv_heads, dim;
  float scale;
};

// Warps take runs of 32 keys in turns: a lane has one key in the scores, and each 32nd value of a
// row in the sums.
template <typename T>
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
  const int keys = span.context + tile.first_query + 1;
  const int64_t token = span.begin + tile.first_query;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int kv_head = head / (a.heads / a.kv_heads);
  const int64_t row = static_cast<int64_t>(a.kv_heads) * a.dim;
  for (int i = threadIdx.x; i < a.dim; i += blockDim.x)
    query[i] = to_float(a.q[token * a.q_stride + static_cast<int64_t>(head) * a.dim + i]);
  __syncthreads();

  float sum[kPerLane] = {}, largest = -INFINITY, weight = 0;
  for (int first = warp * kWarpSize; first < keys; first += kWarps * kWarpSize) {
    const int key = first + lane;
    int64_t at = 0;
    float score = -INFINITY;
    if (key < keys) {
      const int64_t block = a.block_tables[span.first_block + key / static_cast<int>(kBlockTokens)];
      at =
          block * a.block_stride + key % kBlockTokens * row + static_cast<int64_t>(kv_head) * a.dim;
      score = 0;
      for (int i = 0; i < a.dim; ++i) score += query[i] * to_float(a.layer[at + i]);
      score *= a.scale;
    }
    // The first lane has a key, so the new maximum is finite.
    const float maximum = fmaxf(largest, warp_max(score));
    const float shrink = expf(largest - maximum), p = expf(score - maximum);
    weight = weight * shrink + warp_sum(p);
    largest = maximum;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) sum[i] *= shrink;
    const int count = min(kWarpSize, keys - first);
    for (int j = 0; j < count; ++j) {
      const float pj = __shfl_sync(kAllLanes, p, j);
      const T* value = a.layer + __shfl_sync(kAllLanes, at, j) + kBlockTokens * row;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i)
        if (lane + i * kWarpSize < a.dim) sum[i] += pj * to_float(value[lane + i * kWarpSize]);
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
                                 cache.block_stride,
                                 static_cast<const T*>(call.q.data),
                                 call.q.token_stride,
                                 static_cast<T*>(call.out),
                                 call.tables.spans,
                                 call.tables.block_tables,
                                 call.tables.tiles,
                                 call.heads,
                                 cache.kv_heads,
                                 cache.dim,
                                 1.0f / sqrtf(static_cast<float>(cache.dim))};
    const auto blocks = static_cast<unsigned>(call.sizes.tiles) * call.heads;
    return launch(plain_kernel<T>, blocks, kWarps * kWarpSize, 0, call.stream, arguments);
  });
}

}  // namespace valora::kernels::cuda
