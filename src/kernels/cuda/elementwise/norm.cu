#include <algorithm>

#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/shared.cuh"
#include "kernels/cuda/device/vector.cuh"
#include "kernels/cuda/elementwise.h"

namespace valora::kernels::cuda {
namespace {

constexpr int kMaxThreads = 512;
constexpr int kHeld = 4;  // vectors per thread kept in registers between the two passes

// One thread block per row (a head of a token). n: elements per access. add: tokens have one head
// and the residual is laid out like out; otherwise it is null.
template <typename T, int n, bool add>
__global__ void __launch_bounds__(kMaxThreads)
    rms_norm_kernel(T* x, int64_t token_stride, int heads, const T* residual, const T* weight,
                    float offset, T* out, int width, float eps) {
  wait_for_earlier_launch();
  VALORA_SHARED(float, partial, [32]);
  const int64_t row = static_cast<int64_t>(blockIdx.x) * width;
  const int64_t from =
      add ? row
          : blockIdx.x / heads * token_stride + static_cast<int64_t>(blockIdx.x % heads) * width;
  const int vectors = width / n, stride = blockDim.x;
  float held[kHeld][n];
  float squares = 0;
  const auto read = [&](int vector, float (&values)[n]) {
    load<T, n>(x + from + vector * n, values);
    if constexpr (add) {
      float other[n];
      load<T, n>(residual + row + vector * n, other);
#pragma unroll
      for (int j = 0; j < n; ++j) values[j] = to_float(from_float<T>(values[j] + other[j]));
      store<T, n>(x + from + vector * n, values);
    }
#pragma unroll
    for (int j = 0; j < n; ++j) squares += values[j] * values[j];
  };
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const int vector = threadIdx.x + i * stride;
    if (vector < vectors) read(vector, held[i]);
  }
  for (int vector = threadIdx.x + kHeld * stride; vector < vectors; vector += stride) {
    float values[n];
    read(vector, values);
  }
  const float factor = rsqrtf(block_sum(squares, partial) / static_cast<float>(width) + eps);
  const auto write = [&](int vector, float (&values)[n]) {
    float scales[n];
    load<T, n>(weight + vector * n, scales);
#pragma unroll
    for (int j = 0; j < n; ++j) values[j] = values[j] * factor * (offset + scales[j]);
    store<T, n>(out + row + vector * n, values);
  };
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const int vector = threadIdx.x + i * stride;
    if (vector < vectors) write(vector, held[i]);
  }
  for (int vector = threadIdx.x + kHeld * stride; vector < vectors; vector += stride) {
    float values[n];
    load<T, n>(x + from + vector * n, values);
    write(vector, values);
  }
}

template <typename T, bool add>
Status norm(const Heads& x, const T* residual, const T* weight, float offset, T* out,
            int64_t tokens, int32_t width, float eps, Stream stream) {
  const int64_t rows = tokens * x.heads;
  if (rows == 0 || width == 0) return cudaSuccess;
  const auto run = [&](auto vector) {
    constexpr int n = decltype(vector)::value;
    const int threads = std::min(ceil_div(width / n, kWarpSize) * kWarpSize, kMaxThreads);
    return launch(rms_norm_kernel<T, n, add>, static_cast<unsigned>(rows), threads, 0, stream,
                  static_cast<T*>(x.data), x.token_stride, x.heads, residual, weight, offset, out,
                  width, eps);
  };
  if (whole_vectors<T>({width, x.token_stride}) && aligned16({x.data, residual, weight, out}))
    return run(std::integral_constant<int, kVector<T>>{});
  return run(std::integral_constant<int, 1>{});
}

}  // namespace

Status rms_norm(Dtype dtype, Heads x, const void* weight, float offset, void* out, int64_t tokens,
                int32_t width, float eps, Stream stream) {
  return with_type(dtype, [&](auto type) {
    using T = decltype(type);
    return norm<T, false>(x, nullptr, static_cast<const T*>(weight), offset, static_cast<T*>(out),
                          tokens, width, eps, stream);
  });
}

Status add_rms_norm(Dtype dtype, void* x, const void* residual, const void* weight, float offset,
                    void* out, int64_t rows, int32_t width, float eps, Stream stream) {
  return with_type(dtype, [&](auto type) {
    using T = decltype(type);
    return norm<T, true>({x, width, 1}, static_cast<const T*>(residual),
                         static_cast<const T*>(weight), offset, static_cast<T*>(out), rows, width,
                         eps, stream);
  });
}

}  // namespace valora::kernels::cuda
