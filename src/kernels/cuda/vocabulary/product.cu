#include <algorithm>

#include "kernels/cuda/device/factor.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/vector.cuh"
#include "kernels/cuda/vocabulary.h"

namespace valora::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kTokens = 4;  // of a thread block

// A warp per row of the matrix. blockIdx: rows, tokens. n: kVector<T> or 1.
template <typename T, int n>
__global__ void __launch_bounds__(kThreads) row_product_kernel(RowProduct a) {
  wait_for_earlier_launch();
  const int row = blockIdx.x * kWarps + threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  if (row >= a.rows) return;
  const int first = blockIdx.y * kTokens, tokens = min(kTokens, a.tokens - first);
  const T* w = factor_row<T>(a.matrix, static_cast<int>(a.first_row) + row, a.width);
  const float* x = a.x + static_cast<int64_t>(first) * a.width;
  constexpr int kLoad = n > 1 ? kVector<float> : 1;
  float sums[kTokens] = {};
  for (int k = lane * n; k < a.width; k += kWarpSize * n) {
    float values[n];
    load<T, n>(w + k, values);
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
      if (t >= tokens) break;
      const float* at = x + static_cast<int64_t>(t) * a.width + k;
      float inputs[n];
#pragma unroll
      for (int i = 0; i < n; i += kLoad)
        load<float, kLoad>(at + i, *reinterpret_cast<float (*)[kLoad]>(inputs + i));
#pragma unroll
      for (int i = 0; i < n; ++i) sums[t] += inputs[i] * values[i];
    }
  }
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    if (t >= tokens) break;
    const float sum = warp_sum(sums[t]);
    float* y = a.y + static_cast<int64_t>(first + t) * a.y_stride + row;
    if (lane == 0) *y = a.adds ? *y + sum : sum;
  }
}

}  // namespace

Status row_product(const RowProduct& product, Stream stream) {
  if (product.rows == 0 || product.tokens == 0) return cudaSuccess;
  return with_type(product.dtype, [&](auto type) {
    using T = decltype(type);
    const dim3 grid(ceil_div(product.rows, kWarps), ceil_div(product.tokens, kTokens));
    return whole_vectors<T>({product.width})
               ? launch(row_product_kernel<T, kVector<T>>, grid, kThreads, 0, stream, product)
               : launch(row_product_kernel<T, 1>, grid, kThreads, 0, stream, product);
  });
}

}  // namespace valora::kernels::cuda
