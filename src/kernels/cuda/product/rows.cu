// For few tokens: each integer is read once and multiplied by all of them, using registers only.
// The warps of a thread block share a strip of outputs and split its inputs.
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/shared.cuh"
#include "kernels/cuda/product/arguments.cuh"
#include "kernels/cuda/product/fragments.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kAhead = 4;  // chunks whose loads a warp has in flight

// row: null for zeros.
template <typename T>
__device__ uint4 load_row(const T* row, int k, int in) {
  if (row == nullptr || k >= in) return {};
  return __ldg(reinterpret_cast<const uint4*>(row + k));
}

// kColumns: groups of eight tokens. blockIdx.x: strip; y: slice.
template <typename T, int kBits, bool kMinimums, int kColumns>
__global__ void __launch_bounds__(kThreads) rows_kernel(IntegerArguments<T> a) {
  wait_for_earlier_launch();
  VALORA_SHARED(float4, partial, [kWarps][kColumns][kWarpSize]);
  const IntegerOutput<T>& slice = a.slices[blockIdx.y];
  const IntegerMatrix& w = slice.w;
  const int strip = blockIdx.x;
  if (strip >= w.strips) return;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int g = lane / 4, q = lane % 4;
  const T* tokens[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c)
    tokens[c] = c * 8 + g < a.tokens ? a.x + (c * 8 + g) * a.x_stride : nullptr;

  float sums[kColumns][4] = {};
  for (int first = warp; first < w.chunks; first += kAhead * kWarps) {
    uint4 words[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) words[i] = load_chunk(w, strip, first + i * kWarps, lane);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int chunk = first + i * kWarps;
      if (chunk >= w.chunks) break;
#pragma unroll
      for (int step = 0; step < kChunkInputs<kBits> / kStepInputs; ++step) {
        const int k = chunk * kChunkInputs<kBits> + step * kStepInputs;
        const StripFragments f = decode_strip<T, kBits>(words[i], step, group_of(w, strip, k, g));
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          const uint4 x = load_row(tokens[c], k + 8 * q, a.in);
          float of_inputs[4] = {};
          if constexpr (kMinimums) sum_inputs<T>(of_inputs, x);
          add_step<T, kMinimums>(sums[c], f, x, of_inputs);
        }
      }
    }
  }

#pragma unroll
  for (int c = 0; c < kColumns; ++c)
    partial[warp][c][lane] = {sums[c][0], sums[c][1], sums[c][2], sums[c][3]};
  __syncthreads();
  for (int i = threadIdx.x; i < kColumns * kWarpSize; i += kThreads) {
    const int column = i / kWarpSize, owner = i % kWarpSize;
    float4 sum{0, 0, 0, 0};
#pragma unroll
    for (int from = 0; from < kWarps; ++from) {
      const float4 p = partial[from][column][owner];
      sum.x += p.x, sum.y += p.y, sum.z += p.z, sum.w += p.w;
    }
    const int out = strip * kStripOuts + owner / 4 * 2, token = column * 8 + owner % 4 * 2;
    if (token < a.tokens) write_pair(slice, token, out, sum.x, sum.z);
    if (token + 1 < a.tokens) write_pair(slice, token + 1, out, sum.y, sum.w);
  }
}

template <typename T, int kColumns>
Status rows_in(const IntegerCall& call, Stream stream) {
  return with_integer_kind(call, [&](auto bits, auto minimums) {
    const dim3 grid(most_strips(call), call.slice_count);
    return launch(rows_kernel<T, decltype(bits)::value, decltype(minimums)::value, kColumns>, grid,
                  kThreads, 0, stream, integer_arguments<T>(call));
  });
}

}  // namespace

Status integer_rows(const IntegerCall& call, Stream stream) {
  return with_half_type(call.dtype, [&](auto type) {
    using T = decltype(type);
    if (call.tokens <= 8) return rows_in<T, 1>(call, stream);
    return call.tokens <= 16 ? rows_in<T, 2>(call, stream) : rows_in<T, 4>(call, stream);
  });
}

}  // namespace valora::kernels::cuda
