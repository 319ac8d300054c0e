#include "kernels/cuda/delta/state.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/vector.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kRows = 4;  // per thread, so that a weight is loaded once for them

template <typename T>
struct Arguments {
  StatePool states;
  const T* x;
  int64_t x_stride;
  const T* weights;
  T* out;
  StateTables tables;
  int taps, channels;
};

// gridDim.x covers the tokens, gridDim.y the channels. n: channels per thread.
template <typename T, int n>
__global__ void __launch_bounds__(kThreads) short_conv_kernel(Arguments<T> a) {
  wait_for_earlier_launch();
  const int channel = (blockIdx.y * kThreads + threadIdx.x) * n;
  const int first = blockIdx.x * kRows;
  if (channel >= a.channels) return;
  int begins[kRows], from[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int span = first + r < a.tables.tokens ? a.tables.span_of[first + r] : -1;
    begins[r] = span < 0 ? -1 : a.tables.spans[span].begin;
    from[r] = span < 0 ? -1 : a.tables.spans[span].from;
  }
  float sums[kRows][n] = {};
  for (int tap = 0; tap < a.taps; ++tap) {
    float weights[n];
    load<T, n>(a.weights + static_cast<int64_t>(tap) * a.channels + channel, weights);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (begins[r] < 0) continue;
      const WindowedRows<T> rows{
          a.x + begins[r] * a.x_stride, a.x_stride, a.states, a.tables.blocks, from[r], a.taps - 1};
      const T* row = rows.row(first + r - begins[r] - a.taps + 1 + tap);
      if (row == nullptr) continue;
      float values[n];
      load<T, n>(row + channel, values);
#pragma unroll
      for (int j = 0; j < n; ++j) sums[r][j] += values[j] * weights[j];
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (begins[r] < 0) continue;
#pragma unroll
    for (int j = 0; j < n; ++j) sums[r][j] /= 1.0f + expf(-sums[r][j]);
    store<T, n>(a.out + static_cast<int64_t>(first + r) * a.channels + channel, sums[r]);
  }
}

}  // namespace

Status short_conv(Dtype dtype, const StateShape& shape, const StatePool& states, TokenRows x,
                  const void* weights, void* out, const StateTables& tables, Stream stream) {
  if (tables.tokens == 0) return cudaSuccess;
  return with_type(dtype, [&](auto type) {
    using T = decltype(type);
    const Arguments<T> arguments{states,
                                 static_cast<const T*>(x.data),
                                 x.token_stride,
                                 static_cast<const T*>(weights),
                                 static_cast<T*>(out),
                                 tables,
                                 static_cast<int>(shape.taps),
                                 static_cast<int>(shape.channels)};
    const auto run = [&](auto vector) {
      constexpr int n = decltype(vector)::value;
      const dim3 grid(ceil_div(tables.tokens, kRows),
                      ceil_div(ceil_div(arguments.channels, n), kThreads));
      return launch(short_conv_kernel<T, n>, grid, kThreads, 0, stream, arguments);
    };
    if (whole_vectors<T>({shape.channels, x.token_stride}) &&
        aligned16({x.data, weights, out, states.data}))
      return run(std::integral_constant<int, kVector<T>>{});
    return run(std::integral_constant<int, 1>{});
  });
}

}  // namespace valora::kernels::cuda
