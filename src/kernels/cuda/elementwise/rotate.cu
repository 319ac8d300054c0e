#include <algorithm>

#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/vector.cuh"
#include "kernels/cuda/elementwise.h"

namespace valora::kernels::cuda {
namespace {

constexpr int kMaxThreads = 256;

template <typename T>
struct Rows {
  T* data;
  int64_t token_stride;
  int heads;
};

// One block per token. n: elements per access.
template <typename T, int n>
__global__ void __launch_bounds__(kMaxThreads)
    rotate_half_kernel(Rows<T> q, Rows<T> k, const float* cos, const float* sin, int half) {
  wait_for_earlier_launch();
  const int64_t token = blockIdx.x;
  const int per_head = half / n, count = (q.heads + k.heads) * per_head;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const int head = i / per_head, at = (i - head * per_head) * n;
    T* x = head < q.heads
               ? q.data + token * q.token_stride + static_cast<int64_t>(head) * 2 * half
               : k.data + token * k.token_stride + static_cast<int64_t>(head - q.heads) * 2 * half;
    const float* c = cos + token * half + at;
    const float* s = sin + token * half + at;
    float first[n], second[n];
    load<T, n>(x + at, first);
    load<T, n>(x + half + at, second);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const float a = first[j], b = second[j];
      first[j] = a * c[j] - b * s[j];
      second[j] = b * c[j] + a * s[j];
    }
    store<T, n>(x + at, first);
    store<T, n>(x + half + at, second);
  }
}

template <typename T>
Status rotate(const Heads& q, const Heads& k, const float* cos, const float* sin, int64_t tokens,
              int32_t dim, Stream stream) {
  const int half = dim / 2;
  if (tokens == 0 || half == 0 || q.heads + k.heads == 0) return cudaSuccess;
  const Rows<T> q_rows{static_cast<T*>(q.data), q.token_stride, q.heads},
      k_rows{static_cast<T*>(k.data), k.token_stride, k.heads};
  const auto run = [&](auto vector) {
    constexpr int n = decltype(vector)::value;
    const int count = (q.heads + k.heads) * (half / n);
    const int threads = std::min(ceil_div(count, kWarpSize) * kWarpSize, kMaxThreads);
    return launch(rotate_half_kernel<T, n>, static_cast<unsigned>(tokens), threads, 0, stream,
                  q_rows, k_rows, cos, sin, half);
  };
  if (whole_vectors<T>({half, q.token_stride, k.token_stride}) && aligned16({q.data, k.data}))
    return run(std::integral_constant<int, kVector<T>>{});
  return run(std::integral_constant<int, 1>{});
}

}  // namespace

Status rotate_half(Dtype dtype, Heads q, Heads k, const float* cos, const float* sin,
                   int64_t tokens, int32_t dim, Stream stream) {
  return with_type(dtype, [&](auto type) {
    return rotate<decltype(type)>(q, k, cos, sin, tokens, dim, stream);
  });
}

Status rotate_half(Dtype dtype, Heads x, const float* cos, const float* sin, int64_t tokens,
                   int32_t dim, Stream stream) {
  return rotate_half(dtype, x, Heads{}, cos, sin, tokens, dim, stream);
}

}  // namespace valora::kernels::cuda
