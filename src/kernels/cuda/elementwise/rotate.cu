#include <algorithm>

#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/vector.cuh"
#include "kernels/cuda/elementwise.h"

namespace valora::kernels::cuda {
namespace {

constexpr int kMaxThreads = 256;

// One thread block per token. n: elements per access.
template <typename T, int n>
__global__ void __launch_bounds__(kMaxThreads)
    rotate_half_kernel(T* rows, int64_t token_stride, int heads, const float* cos, const float* sin,
                       int dim, int half) {
  wait_for_earlier_launch();
  const int64_t token = blockIdx.x;
  const int per_head = half / n, count = heads * per_head;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const int head = i / per_head, at = (i - head * per_head) * n;
    T* x = rows + token * token_stride + static_cast<int64_t>(head) * dim;
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

}  // namespace

Status rotate_half(Dtype dtype, Heads x, const float* cos, const float* sin, int64_t tokens,
                   int32_t dim, int32_t rotated, Stream stream) {
  const int half = rotated / 2;
  if (tokens == 0 || half == 0 || x.heads == 0) return cudaSuccess;
  return with_type(dtype, [&](auto type) {
    using T = decltype(type);
    const auto run = [&](auto vector) {
      constexpr int n = decltype(vector)::value;
      const int threads =
          std::min(ceil_div(x.heads * (half / n), kWarpSize) * kWarpSize, kMaxThreads);
      return launch(rotate_half_kernel<T, n>, static_cast<unsigned>(tokens), threads, 0, stream,
                    static_cast<T*>(x.data), x.token_stride, x.heads, cos, sin, dim, half);
    };
    if (whole_vectors<T>({half, dim, x.token_stride}) && aligned16({x.data}))
      return run(std::integral_constant<int, kVector<T>>{});
    return run(std::integral_constant<int, 1>{});
  });
}

}  // namespace valora::kernels::cuda
