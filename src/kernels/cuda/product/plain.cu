// Without tensor cores: a warp computes a strip of outputs for a few tokens. Each lane takes the
// inputs that the layout assigns to it.
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/product/arguments.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kTokens = 4;  // after the reduction, one per lane of four

// values: integers of an output minus the zero-point.
__device__ inline float add_eight(float sum, const float (&values)[8], const float (&x)[8],
                                  float scale, float least) {
  float product = 0, inputs = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) product = fmaf(values[i], x[i], product), inputs += x[i];
  return fmaf(scale, product, fmaf(least, inputs, sum));
}

// blockIdx.x: tokens; y: strips; z: slice.
template <typename T, int kBits>
__global__ void __launch_bounds__(kThreads) plain_kernel(IntegerArguments<T> a) {
  wait_for_earlier_launch();
  const IntegerOutput<T>& slice = a.slices[blockIdx.z];
  const IntegerMatrix& w = slice.w;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int g = lane / 4, q = lane % 4, first_token = blockIdx.x * kTokens;
  const int strip = blockIdx.y * kWarps + warp;
  if (strip >= w.strips) return;
  float sums[kTokens][2] = {};
  for (int chunk = 0; chunk < w.chunks; ++chunk) {
    const uint4 words = load_chunk(w, strip, chunk, lane);
#pragma unroll
    for (int step = 0; step < kChunkInputs<kBits> / kStepInputs; ++step) {
      const int k = chunk * kChunkInputs<kBits> + step * kStepInputs + 8 * q;
      const GroupOfPair group = group_of(w, strip, k, g);
      float values[2][8];
      decode<kBits>(eight_of<kBits>(words, step, 0), group.zero.x, values[0]);
      decode<kBits>(eight_of<kBits>(words, step, 1), group.zero.y, values[1]);
#pragma unroll
      for (int t = 0; t < kTokens; ++t) {
        if (first_token + t >= a.tokens) break;
        const T* const row = a.x + (first_token + t) * a.x_stride + k;
        float x[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = k + i < a.in ? to_float(row[i]) : 0.0f;
        sums[t][0] = add_eight(sums[t][0], values[0], x, group.scale.x, group.least.x);
        sums[t][1] = add_eight(sums[t][1], values[1], x, group.scale.y, group.least.y);
      }
    }
  }
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
#pragma unroll
    for (int mask = 1; mask < kTokens; mask *= 2) {
      sums[t][0] += __shfl_xor_sync(kAllLanes, sums[t][0], mask);
      sums[t][1] += __shfl_xor_sync(kAllLanes, sums[t][1], mask);
    }
    if (t == q && first_token + t < a.tokens)
      write_pair(slice, first_token + t, strip * kStripOuts + 2 * g, sums[t][0], sums[t][1]);
  }
}

}  // namespace

Status integer_plain(const IntegerCall& call, Stream stream) {
  const dim3 grid(ceil_div(call.tokens, kTokens), ceil_div(most_strips(call), kWarps),
                  call.slice_count);
  return with_type(call.dtype, [&](auto type) {
    using T = decltype(type);
    const IntegerArguments<T> arguments = integer_arguments<T>(call);
    return with_bits(call.slices[0].w.bits, [&](auto bits) {
      return launch(plain_kernel<T, bits>, grid, kThreads, 0, stream, arguments);
    });
  });
}

}  // namespace valora::kernels::cuda
