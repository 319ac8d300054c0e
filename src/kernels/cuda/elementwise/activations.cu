#include <algorithm>

#include "kernels/cuda/device/gate.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/vector.cuh"
#include "kernels/cuda/elementwise.h"

namespace valora::kernels::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T, int n>
__global__ void __launch_bounds__(kThreads) quick_gelu_kernel(const T* x, T* out, int64_t vectors) {
  wait_for_earlier_launch();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= vectors) return;
  float values[n];
  load<T, n>(x + i * n, values);
#pragma unroll
  for (int j = 0; j < n; ++j) values[j] *= sigmoid(1.702f * values[j]);
  store<T, n>(out + i * n, values);
}

// gridDim.x covers a row; rows are distributed over gridDim.y.
template <Gate activation, typename T, int n>
__global__ void __launch_bounds__(kThreads)
    gate_mul_kernel(const T* gate, int64_t gate_stride, const T* up, int64_t up_stride, T* out,
                    int64_t rows, int width) {
  wait_for_earlier_launch();
  const int column = (blockIdx.x * kThreads + threadIdx.x) * n;
  if (column >= width) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    float values[n], factors[n];
    load<T, n>(gate + row * gate_stride + column, values);
    load<T, n>(up + row * up_stride + column, factors);
#pragma unroll
    for (int j = 0; j < n; ++j) values[j] = activated(activation, values[j]) * factors[j];
    store<T, n>(out + row * width + column, values);
  }
}

template <typename T>
Status activate(const T* x, T* out, int64_t count, Stream stream) {
  if (count == 0) return cudaSuccess;
  const auto run = [&](auto vector) {
    constexpr int n = decltype(vector)::value;
    const int64_t vectors = count / n;
    return launch(quick_gelu_kernel<T, n>,
                  static_cast<unsigned>(ceil_div<int64_t>(vectors, kThreads)), kThreads, 0, stream,
                  x, out, vectors);
  };
  if (whole_vectors<T>({count}) && aligned16({x, out}))
    return run(std::integral_constant<int, kVector<T>>{});
  return run(std::integral_constant<int, 1>{});
}

template <Gate activation, typename T>
Status gate_rows(const T* gate, int64_t gate_stride, const T* up, int64_t up_stride, T* out,
                 int64_t rows, int32_t width, Stream stream) {
  if (rows == 0 || width == 0) return cudaSuccess;
  const auto run = [&](auto vector) {
    constexpr int n = decltype(vector)::value;
    const dim3 grid(ceil_div(width / n, kThreads),
                    static_cast<unsigned>(std::min<int64_t>(rows, 65535)));
    return launch(gate_mul_kernel<activation, T, n>, grid, kThreads, 0, stream, gate, gate_stride,
                  up, up_stride, out, rows, width);
  };
  if (whole_vectors<T>({width, gate_stride, up_stride}) && aligned16({gate, up, out}))
    return run(std::integral_constant<int, kVector<T>>{});
  return run(std::integral_constant<int, 1>{});
}

}  // namespace

Status quick_gelu(Dtype dtype, const void* x, void* out, int64_t count, Stream stream) {
  return with_type(dtype, [&](auto type) {
    using T = decltype(type);
    return activate(static_cast<const T*>(x), static_cast<T*>(out), count, stream);
  });
}

Status gate_mul(Gate activation, Dtype dtype, const void* gate, int64_t gate_stride, const void* up,
                int64_t up_stride, void* out, int64_t rows, int32_t width, Stream stream) {
  return with_type(dtype, [&](auto type) {
    using T = decltype(type);
    const auto run =
        activation == Gate::kSilu ? gate_rows<Gate::kSilu, T> : gate_rows<Gate::kGeluTanh, T>;
    return run(static_cast<const T*>(gate), gate_stride, static_cast<const T*>(up), up_stride,
               static_cast<T*>(out), rows, width, stream);
  });
}

}  // namespace valora::kernels::cuda
