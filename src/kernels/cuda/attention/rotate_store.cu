// Processes a step's queries, keys and values between projection and attention, in one launch.
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/vector.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kMaxThreads = 256;

template <typename T>
struct Arguments {
  T* layer;
  int64_t block_stride;
  T* q;
  const T *k, *v;
  int64_t q_stride, k_stride, v_stride;
  Angles of_q, of_k;
  const int64_t* slots;
  int heads, kv_heads, dim, half;  // half: of what is rotated
};

// Loads n angles starting at p.
template <int n>
__device__ void load_angles(const float* p, float (&angles)[n]) {
  if constexpr (n == 1) {
    angles[0] = *p;
  } else {
#pragma unroll
    for (int i = 0; i < n; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(p + i);
      angles[i] = four.x, angles[i + 1] = four.y, angles[i + 2] = four.z, angles[i + 3] = four.w;
    }
  }
}

// Rotates n elements of each half of a head, from `from` to `to`, which may be equal.
template <typename T, int n>
__device__ void rotate(const T* from, T* to, int half, const float* cos, const float* sin) {
  float first[n], second[n], c[n], s[n];
  load<T, n>(from, first);
  load<T, n>(from + half, second);
  load_angles(cos, c);
  load_angles(sin, s);
#pragma unroll
  for (int j = 0; j < n; ++j) {
    const float a = first[j], b = second[j];
    first[j] = a * c[j] - b * s[j];
    second[j] = b * c[j] + a * s[j];
  }
  store<T, n>(to, first);
  store<T, n>(to + half, second);
}

template <typename T, int n>
__device__ void copy(const T* from, T* to) {
  using Values = std::conditional_t<n == 1, T, uint4>;
  *reinterpret_cast<Values*>(to) = *reinterpret_cast<const Values*>(from);
}

// One block per token (x), with one thread per n pairs of rotated elements of the queries and of
// the keys, then one per n other elements of the keys and one per n elements of the values.
template <typename T, int n>
__global__ void __launch_bounds__(kMaxThreads) rotate_store_kernel(Arguments<T> a) {
  wait_for_earlier_launch();
  const int64_t token = blockIdx.x, row = static_cast<int64_t>(a.kv_heads) * a.dim;
  const int per_head = a.half / n, item = blockIdx.y * blockDim.x + threadIdx.x;
  const int head = item / per_head, at = (item - head * per_head) * n;
  const int64_t angle = token * a.half + at;
  if (head < a.heads) {
    T* q = a.q + token * a.q_stride + static_cast<int64_t>(head) * a.dim + at;
    rotate<T, n>(q, q, a.half, a.of_q.cos + angle, a.of_q.sin + angle);
    return;
  }
  const int64_t slot = a.slots[token];
  if (slot < 0) return;
  T* key = a.layer + slot / kBlockTokens * a.block_stride + slot % kBlockTokens * row;
  const int key_head = head - a.heads;
  if (key_head < a.kv_heads) {
    const int64_t from = static_cast<int64_t>(key_head) * a.dim + at;
    rotate<T, n>(a.k + token * a.k_stride + from, key + from, a.half, a.of_k.cos + angle,
                 a.of_k.sin + angle);
    return;
  }
  const int other = item - (a.heads + a.kv_heads) * per_head, per_rest = a.dim / n - 2 * per_head;
  if (other < a.kv_heads * per_rest) {
    const int64_t from = static_cast<int64_t>(other / per_rest) * a.dim + 2 * a.half +
                         static_cast<int64_t>(other % per_rest) * n;
    copy<T, n>(a.k + token * a.k_stride + from, key + from);
    return;
  }
  const int64_t from = static_cast<int64_t>(other - a.kv_heads * per_rest) * n;
  if (from >= row) return;
  copy<T, n>(a.v + token * a.v_stride + from, key + kBlockTokens * row + from);
}

template <typename T>
bool takes_vectors(const Arguments<T>& a) {
  return whole_vectors<T>({a.dim, a.half, a.q_stride, a.k_stride, a.v_stride, a.block_stride}) &&
         aligned16({a.layer, a.q, a.k, a.v, a.of_q.cos, a.of_q.sin, a.of_k.cos, a.of_k.sin});
}

}  // namespace

Status rotate_and_store(const KvCache& cache, Heads q, TokenRows k, TokenRows v, Angles of_q,
                        Angles of_k, int32_t rotated, const int64_t* slots, int64_t tokens,
                        Stream stream) {
  if (in_bytes(cache.format)) return cudaErrorInvalidValue;
  if (tokens == 0 || cache.dim == 0) return cudaSuccess;
  return with_type(cache.dtype, [&](auto type) {
    using T = decltype(type);
    const Arguments<T> arguments{static_cast<T*>(cache.pool) + cache.layer_offset,
                                 cache.block_stride,
                                 static_cast<T*>(q.data),
                                 static_cast<const T*>(k.data),
                                 static_cast<const T*>(v.data),
                                 q.token_stride,
                                 k.token_stride,
                                 v.token_stride,
                                 of_q,
                                 of_k,
                                 slots,
                                 q.heads,
                                 cache.kv_heads,
                                 cache.dim,
                                 rotated / 2};
    const auto run = [&](auto vector) {
      constexpr int n = decltype(vector)::value;
      const int items =
          (q.heads * arguments.half + cache.kv_heads * (2 * cache.dim - arguments.half)) / n;
      const int threads = std::min(ceil_div(items, kWarpSize) * kWarpSize, kMaxThreads);
      const dim3 grid(static_cast<unsigned>(tokens), ceil_div(items, threads));
      return launch(rotate_store_kernel<T, n>, grid, threads, 0, stream, arguments);
    };
    if (takes_vectors(arguments)) return run(std::integral_constant<int, kVector<T>>{});
    return run(std::integral_constant<int, 1>{});
  });
}

}  // namespace valora::kernels::cuda
