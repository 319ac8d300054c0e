// For many tokens: a thread block computes 64 tokens and the strips of its warps. x comes through
// shared memory, kPadInputs at a time. A strip's integers go straight into the registers of the one
// warp that multiplies them, and are decoded once for all tokens of the tile.
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/shared.cuh"
#include "kernels/cuda/product/arguments.cuh"
#include "kernels/cuda/product/fragments.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kTokens = 64;
constexpr int kColumns = kTokens / 8;
constexpr int kStages = 3;            // stages of x; all but one are in flight
constexpr int kRow = kPadInputs / 8;  // 16-byte pieces per token
static_assert(kTokens > kMostRowTokens);

// Where a token's piece is stored. Eight lanes read pieces of two tokens at once, so these are in
// different banks.
__device__ inline int place_of(int token, int piece) {
  return token * kRow + (piece ^ (token % 2 * (kRow / 2)));
}

// Copies inputs [k, k + kPadInputs) of the tile's tokens, with zeros beyond the last token or
// input.
template <typename T>
__device__ void copy_inputs(uint4* stage, const IntegerArguments<T>& a, int first_token, int k) {
#pragma unroll
  for (int i = threadIdx.x; i < kTokens * kRow; i += kThreads) {
    const int token = i / kRow, piece = i % kRow;
    const bool valid = first_token + token < a.tokens && k + piece * 8 < a.in;
    const T* const from = valid ? a.x + (first_token + token) * a.x_stride + k + piece * 8 : a.x;
    copy_async(shared_address(stage + place_of(token, piece)), from, valid);
  }
}

template <typename T, int kStrips>
__device__ inline void write_sums(const IntegerOutput<T>& slice, int tokens, int first_token,
                                  int first_strip, const float (&sums)[kStrips][kColumns][4]) {
  const int lane = threadIdx.x % kWarpSize, g = lane / 4, q = lane % 4;
#pragma unroll
  for (int s = 0; s < kStrips; ++s)
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int out = (first_strip + s) * kStripOuts + 2 * g, token = first_token + c * 8 + 2 * q;
      const float* const sum = sums[s][c];
      if (token < tokens) write_pair(slice, token, out, sum[0], sum[2]);
      if (token + 1 < tokens) write_pair(slice, token + 1, out, sum[1], sum[3]);
    }
}

// kStrips: strips per warp. blockIdx.x: tokens; y: outputs; z: slice.
template <typename T, int kBits, bool kMinimums, int kStrips>
__global__ void __launch_bounds__(kThreads) tiles_kernel(IntegerArguments<T> a) {
  wait_for_earlier_launch();
  VALORA_SHARED(uint4, stages, [kStages][kTokens * kRow]);
  constexpr int kChunks = kPadInputs / kChunkInputs<kBits>;
  const IntegerOutput<T>& slice = a.slices[blockIdx.z];
  const IntegerMatrix& w = slice.w;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int g = lane / 4, q = lane % 4, first_token = blockIdx.x * kTokens;
  if (static_cast<int>(blockIdx.y) * kWarps * kStrips >= w.strips) return;
  const int first_strip = (blockIdx.y * kWarps + warp) * kStrips;
  const int pads = w.chunks / kChunks;

#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < pads) copy_inputs(stages[s], a, first_token, s * kPadInputs);
    commit_copies();
  }
  uint4 next[kStrips][kChunks];
#pragma unroll
  for (int s = 0; s < kStrips; ++s)
#pragma unroll
    for (int c = 0; c < kChunks; ++c) next[s][c] = load_chunk(w, first_strip + s, c, lane);

  float sums[kStrips][kColumns][4] = {};
  for (int pad = 0; pad < pads; ++pad) {
    wait_copies<kStages - 2>();
    __syncthreads();  // this stage is visible, and no warp still reads the previous one
    const int ahead = pad + kStages - 1;
    if (ahead < pads) copy_inputs(stages[ahead % kStages], a, first_token, ahead * kPadInputs);
    commit_copies();
    uint4 words[kStrips][kChunks];
#pragma unroll
    for (int s = 0; s < kStrips; ++s)
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        words[s][c] = next[s][c];
        next[s][c] = load_chunk(w, first_strip + s, (pad + 1) * kChunks + c, lane);
      }
    const uint4* const stage = stages[pad % kStages];
#pragma unroll
    for (int step = 0; step < kPadInputs / kStepInputs; ++step) {
      StripFragments f[kStrips];
#pragma unroll
      for (int s = 0; s < kStrips; ++s)
        f[s] = decode_strip<T, kBits>(words[s][step * kChunks / 2], kChunks == 2 ? 0 : step,
                                      group_of(w, min(first_strip + s, w.strips - 1),
                                               pad * kPadInputs + step * kStepInputs, g));
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const uint4 x = stage[place_of(c * 8 + g, step * (kRow / 2) + q)];
        float of_inputs[4] = {};
        if constexpr (kMinimums) sum_inputs<T>(of_inputs, x);
#pragma unroll
        for (int s = 0; s < kStrips; ++s) add_step<T, kMinimums>(sums[s][c], f[s], x, of_inputs);
      }
    }
  }
  wait_copies<0>();
  write_sums(slice, a.tokens, first_token, first_strip, sums);
}

template <typename T, int kStrips>
Status tiles_with(const IntegerCall& call, Stream stream) {
  return with_integer_kind(call, [&](auto bits, auto minimums) {
    const dim3 grid(ceil_div(call.tokens, kTokens), ceil_div(most_strips(call), kWarps * kStrips),
                    call.slice_count);
    return launch(tiles_kernel<T, decltype(bits)::value, decltype(minimums)::value, kStrips>, grid,
                  kThreads, 0, stream, integer_arguments<T>(call));
  });
}

// With two strips per warp x is read half as often; used if there are enough thread blocks.
int strips_of_warp(const IntegerCall& call) {
  if (call.strips > 0) return call.strips;
  int blocks = 0;
  for (int i = 0; i < call.slice_count; ++i)
    blocks += ceil_div(call.slices[i].w.strips, 2 * kWarps);
  return ceil_div(call.tokens, kTokens) * blocks >= multiprocessors() ? 2 : 1;
}

}  // namespace

Status integer_tiles(const IntegerCall& call, Stream stream) {
  return with_half_type(call.dtype, [&](auto type) {
    using T = decltype(type);
    return strips_of_warp(call) == 2 ? tiles_with<T, 2>(call, stream)
                                     : tiles_with<T, 1>(call, stream);
  });
}

}  // namespace valora::kernels::cuda
