#include <algorithm>

#include "kernels/cuda/lora/expand.cuh"

namespace valora::kernels::cuda {
namespace {

// kWarps: one group of outputs each, or two. blockIdx: tile, outputs, slice.
template <typename T, int kBands, int kGroups, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarpSize) expand_kernel(LoraArguments<T> a) {
  wait_for_earlier_launch();
  const LoraExpandTile tile = a.tables.expand_tiles[blockIdx.x];
  const int slice = blockIdx.z, outs = a.out[slice];
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int g = lane / 4, q = lane % 4;
  const int first_out = (blockIdx.y * kWarps + warp) * kGroups * kGroupOuts;
  if (tile.tokens == 0 || first_out >= outs) return;
  ExpandSums<kBands, kGroups> sums = {};
  if (!add_segments(a, tile, slice, first_out, sums)) return;
#pragma unroll
  for (int b = 0; b < kBands; ++b)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = b * 16 + r * 8 + g;
      if (row >= tile.tokens) continue;
      const int64_t token = tile.token_begin + row;
      T* y = a.y[slice] + token * a.y_stride[slice];
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int out = first_out + group * kGroupOuts + q * 8;
        if (out >= outs) continue;
        float values[8];
        sums.get(b, r, group, values);
        add_base(a, slice, token, out, values);
        store_row(y + out, outs - out, a.y_vectors[slice], values);
      }
    }
}

template <typename T, int kBands, int kGroups, int kWarps>
Status expand_with(const LoraCall& call, const LoraTiles& tiles, const void* workspace,
                   Stream stream) {
  int most_outs = 0;
  for (int i = 0; i < call.slice_count; ++i) most_outs = std::max(most_outs, call.slices[i].out);
  const dim3 grid(call.sizes.expand_tiles, ceil_div(most_outs, kWarps * kGroups * kGroupOuts),
                  call.slice_count);
  return launch(expand_kernel<T, kBands, kGroups, kWarps>, grid, kWarps * kWarpSize, 0, stream,
                lora_arguments<T>(call, tiles, const_cast<void*>(workspace)));
}

// Uses the nearest compiled tile (kernels/tiles/cuda_tile.h).
template <typename T, int kBands>
Status expand_in(const LoraCall& call, const LoraTiles& tiles, const void* workspace,
                 Stream stream) {
  return with_nearest<2, 4, 8>(tiles.expand.warps, [&](auto warps) {
    constexpr int kWarps = decltype(warps)::value;
    return with_nearest<1, 2>(tiles.expand.width / (kGroupOuts * kWarps), [&](auto groups) {
      return expand_with<T, kBands, decltype(groups)::value, kWarps>(call, tiles, workspace,
                                                                     stream);
    });
  });
}

}  // namespace

Status lora_expand(const LoraCall& call, const LoraTiles& tiles, const void* workspace,
                   Stream stream) {
  if (call.sizes.expand_tiles == 0 || call.slice_count == 0 || call.max_rank == 0)
    return cudaSuccess;
  if (call.dtype == Dtype::kFloat)
    return lora_expand_plain(call, tiles, const_cast<void*>(workspace), stream);
  return with_half_type(call.dtype, [&](auto type) {
    using T = decltype(type);
    return call.sizes.tile_tokens > 16 ? expand_in<T, 2>(call, tiles, workspace, stream)
                                       : expand_in<T, 1>(call, tiles, workspace, stream);
  });
}

}  // namespace valora::kernels::cuda
