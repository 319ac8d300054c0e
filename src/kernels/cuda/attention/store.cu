#include <algorithm>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/reduce.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kMaxThreads = 256;

// One thread block per token; y = 0 for K, 1 for V. Sizes and strides are in units of V.
template <typename V>
__global__ void __launch_bounds__(kMaxThreads)
    store_kernel(V* layer, int64_t block_stride, const V* k, int64_t k_stride, const V* v,
                 int64_t v_stride, const int64_t* slots, int width) {
  wait_for_earlier_launch();
  const int64_t token = blockIdx.x, slot = slots[token];
  if (slot < 0) return;
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kBlockTokens + slot % kBlockTokens;
  const V* from = blockIdx.y == 0 ? k + token * k_stride : v + token * v_stride;
  V* to = layer + slot / kBlockTokens * block_stride + row * width;
  for (int i = threadIdx.x; i < width; i += blockDim.x) to[i] = from[i];
}

template <typename V>
Status store(const KvCache& cache, TokenRows k, TokenRows v, const int64_t* slots, int64_t tokens,
             Stream stream) {
  const auto elements = static_cast<int64_t>(sizeof(V) / size_of(cache.dtype));
  const int width = static_cast<int>(cache.kv_heads * cache.dim / elements);
  const int threads = std::min(ceil_div(width, kWarpSize) * kWarpSize, kMaxThreads);
  return launch(store_kernel<V>, dim3(static_cast<unsigned>(tokens), 2), threads, 0, stream,
                static_cast<V*>(cache.pool) + cache.layer_offset / elements,
                cache.block_stride / elements, static_cast<const V*>(k.data),
                k.token_stride / elements, static_cast<const V*>(v.data), v.token_stride / elements,
                slots, width);
}

}  // namespace

Status store_kv(const KvCache& cache, TokenRows k, TokenRows v, const int64_t* slots,
                int64_t tokens, Stream stream) {
  if (tokens == 0) return cudaSuccess;
  if (in_bytes(cache.format)) return store_kv_bytes(cache, k, v, slots, tokens, stream);
  const int64_t vector = 16 / static_cast<int64_t>(size_of(cache.dtype));
  bool vectors = aligned16({cache.pool, k.data, v.data});
  for (const int64_t n : {int64_t{cache.kv_heads} * cache.dim, cache.block_stride,
                          cache.layer_offset, k.token_stride, v.token_stride})
    vectors = vectors && n % vector == 0;
  if (vectors) return store<uint4>(cache, k, v, slots, tokens, stream);
  if (cache.dtype == Dtype::kFloat) return store<float>(cache, k, v, slots, tokens, stream);
  return store<uint16_t>(cache, k, v, slots, tokens, stream);
}

}  // namespace valora::kernels::cuda
