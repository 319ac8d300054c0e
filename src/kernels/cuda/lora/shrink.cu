// Shrink with tensor cores, loading fragments directly from global memory. A sum over k may take
// its terms in any order, so lane q takes values 8q to 8q + 7 of every 32, of both operands, in one
// 16-byte load per row.
#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/shared.cuh"
#include "kernels/cuda/lora/arguments.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kStep = 32;           // inputs per pair of products
constexpr int kChunk = kCudaChunk;  // consecutive inputs per warp: 128 bytes of a row
static_assert(kChunk == 2 * kStep);

// Returns zeros if row is null.
template <typename T>
__device__ uint4 load_inputs(const T* row, int k, int in) {
  if (row == nullptr || k >= in) return {};
  return __ldg(reinterpret_cast<const uint4*>(row + k));
}

// kBands: bands of 16 tokens. kColumns: fragments of 8 ranks. kStages: chunks whose loads are in
// flight. Inputs are divided among warps and thread blocks. blockIdx: tile, (split, ranks), slice.
template <typename T, int kBands, int kColumns, int kWarps, int kStages>
__global__ void __launch_bounds__(kWarps* kWarpSize)
    // NOLINTNEXTLINE(readability-function-size): one pipeline over shared memory
    shrink_kernel(LoraArguments<T> a, int rank_blocks) {
  wait_for_earlier_launch();
  VALORA_SHARED(float4, partial, [kWarps][kBands * kColumns][kWarpSize]);
  const LoraShrinkTile tile = a.tables.shrink_tiles[blockIdx.x];
  if (tile.tokens == 0) return;
  const DeviceLoraSegment segment = a.tables.segments[tile.segment];
  const DeviceLoraModule module = module_of(segment, a.module[blockIdx.z]);
  const int split = blockIdx.y / rank_blocks;
  const int first_rank = (blockIdx.y - split * rank_blocks) * kColumns * 8;
  if (first_rank >= module.rank) return;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize, g = lane / 4;

  const T* ranks[kColumns];
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    const int n = first_rank + j * 8 + g;
    ranks[j] = n < module.rank ? factor_row<T>(module.a, n, a.in) : nullptr;
  }
  const T* tokens[kBands][2];
#pragma unroll
  for (int b = 0; b < kBands; ++b)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = b * 16 + r * 8 + g;
      tokens[b][r] = row < tile.tokens ? a.x + (tile.token_begin + row) * a.x_stride : nullptr;
    }

  float sums[kBands][kColumns][4] = {};
  const int stride = a.splits * kWarps * kChunk;
#pragma unroll kStages
  for (int chunk = (split * kWarps + warp) * kChunk; chunk < a.in; chunk += stride) {
    uint4 w[2][kColumns], x[2][kBands][2];
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      const int k = chunk + s * kStep + lane % 4 * 8;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) w[s][j] = load_inputs(ranks[j], k, a.in);
#pragma unroll
      for (int b = 0; b < kBands; ++b)
#pragma unroll
        for (int r = 0; r < 2; ++r) x[s][b][r] = load_inputs(tokens[b][r], k, a.in);
    }
#pragma unroll
    for (int s = 0; s < 2; ++s)
#pragma unroll
      for (int b = 0; b < kBands; ++b)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          const uint4 &top = x[s][b][0], &bottom = x[s][b][1];
          mma<T>(sums[b][j], top.x, bottom.x, top.y, bottom.y, w[s][j].x, w[s][j].y);
          mma<T>(sums[b][j], top.z, bottom.z, top.w, bottom.w, w[s][j].z, w[s][j].w);
        }
  }

#pragma unroll
  for (int b = 0; b < kBands; ++b)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const float* s = sums[b][j];
      partial[warp][b * kColumns + j][lane] = {s[0], s[1], s[2], s[3]};
    }
  __syncthreads();
  for (int i = threadIdx.x; i < kBands * kColumns * kWarpSize; i += kWarps * kWarpSize) {
    const int fragment = i / kWarpSize, owner = i % kWarpSize;
    float4 sum{};
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float4 p = partial[w][fragment][owner];
      sum.x += p.x, sum.y += p.y, sum.z += p.z, sum.w += p.w;
    }
    const int row = fragment / kColumns * 16 + owner / 4;
    const int column = first_rank + fragment % kColumns * 8 + owner % 4 * 2;
    // Expand reads whole fragments of 8 ranks. Fragments beyond the last one hold only zeros and
    // may have no memory.
    if (column / 8 * 8 >= module.rank) continue;
    const int first_row = segment.first_row + tile.token_begin - segment.token_begin;
    if (row < tile.tokens)
      *reinterpret_cast<float2*>(low_row(a, blockIdx.z, split, first_row + row) + column) = {sum.x,
                                                                                             sum.y};
    if (row + 8 < tile.tokens)
      *reinterpret_cast<float2*>(low_row(a, blockIdx.z, split, first_row + row + 8) + column) = {
          sum.z, sum.w};
  }
}

template <typename T, int kBands, int kColumns, int kWarps, int kStages>
Status shrink_with(const LoraCall& call, const LoraTiles& tiles, void* workspace, Stream stream) {
  const int rank_blocks = ceil_div(call.max_rank, kColumns * 8);
  const dim3 grid(call.sizes.shrink_tiles, rank_blocks * tiles.shrink.splits, call.slice_count);
  return launch(shrink_kernel<T, kBands, kColumns, kWarps, kStages>, grid, kWarps * kWarpSize, 0,
                stream, lora_arguments<T>(call, tiles, workspace), rank_blocks);
}

// Uses the nearest compiled tile (kernels/tiles/cuda_tile.h).
template <typename T, int kBands>
Status shrink_in(const LoraCall& call, const LoraTiles& tiles, void* workspace, Stream stream) {
  return with_nearest<8, 16, 32>(tiles.shrink.width, [&](auto width) {
    return with_nearest<4, 8>(tiles.shrink.warps, [&](auto warps) {
      constexpr int kWidth = decltype(width)::value, kWarps = decltype(warps)::value;
      if constexpr (cuda_stages_fit(kBands, kWidth, 4))
        if (tiles.shrink.stages > 2)
          return shrink_with<T, kBands, kWidth / 8, kWarps, 4>(call, tiles, workspace, stream);
      return shrink_with<T, kBands, kWidth / 8, kWarps, 2>(call, tiles, workspace, stream);
    });
  });
}

}  // namespace

Status lora_shrink(const LoraCall& call, const LoraTiles& tiles, void* workspace, Stream stream) {
  if (call.sizes.shrink_tiles == 0 || call.slice_count == 0 || call.max_rank == 0)
    return cudaSuccess;
  if (call.dtype == Dtype::kFloat || call.in % 8 != 0 || call.x_stride % 8 != 0 ||
      !aligned16({call.x}))
    return lora_shrink_plain(call, tiles, workspace, stream);
  return with_half_type(call.dtype, [&](auto type) {
    using T = decltype(type);
    return call.sizes.tile_tokens > 16 ? shrink_in<T, 2>(call, tiles, workspace, stream)
                                       : shrink_in<T, 1>(call, tiles, workspace, stream);
  });
}

}  // namespace valora::kernels::cuda
