#include <algorithm>

#include "kernels/cuda/device/gate.cuh"
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/lora/arguments.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;

// Warps take turns at (token, rank) pairs. blockIdx: tile, split, slice. Expand reads eight ranks
// at a time, so the last eight are padded with zeros; all splits except the first are zero.
template <typename T>
__global__ void __launch_bounds__(kThreads) shrink_kernel(LoraArguments<T> a) {
  wait_for_earlier_launch();
  const LoraShrinkTile tile = a.tables.shrink_tiles[blockIdx.x];
  if (tile.tokens == 0) return;
  const DeviceLoraSegment segment = a.tables.segments[tile.segment];
  const DeviceLoraModule module = module_of(segment, a.module[blockIdx.z]);
  const int columns = (module.rank + 7) / 8 * 8, split = blockIdx.y;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int first_row = segment.first_row + tile.token_begin - segment.token_begin;
  for (int i = warp; i < tile.tokens * columns; i += kWarps) {
    const int row = i / columns, n = i - row * columns;
    float sum = 0;
    if (n < module.rank && split == 0) {
      const T* x = a.x + (tile.token_begin + row) * a.x_stride;
      const T* w = factor_row<T>(module.a, n, a.in);
      for (int k = lane; k < a.in; k += kWarpSize) sum += to_float(x[k]) * to_float(w[k]);
    }
    sum = warp_sum(sum);
    if (lane == 0) low_row(a, blockIdx.z, split, first_row + row)[n] = sum;
  }
}

// An output of a tile's row with the low-rank products of all segments that cover it.
template <typename T>
__device__ float expanded(const LoraArguments<T>& a, const LoraExpandTile& tile, int slice, int row,
                          int out) {
  const int64_t token = tile.token_begin + row;
  const T* y = a.y[slice] + token * a.y_stride[slice] + out;
  if (tile.covers == 0) return to_float(*y);
  float sum = 0;
  for (int c = 0; c < tile.covers; ++c) {
    const DeviceLoraSegment segment = a.tables.segments[a.tables.covers[tile.first_cover + c]];
    const DeviceLoraModule module = module_of(segment, a.module[slice]);
    if (module.rank == 0) continue;
    const T* w = factor_row<T>(module.b, out, module.rank);
    const int low_at = segment.first_row + tile.token_begin - segment.token_begin + row;
    float product = 0;
    for (int k = 0; k < module.rank; ++k) {
      float low = 0;
      for (int split = 0; split < a.splits; ++split) low += low_row(a, slice, split, low_at)[k];
      product += low * to_float(w[k]);
    }
    sum += segment.coefficient * module.scale * product;
  }
  const float* from = a.sums[slice];
  return (from == nullptr ? to_float(*y) : from[token * a.out[slice] + out]) + sum;
}

// One thread per output and token. blockIdx: tile, outputs, slice.
template <typename T>
__global__ void __launch_bounds__(kThreads) expand_kernel(LoraArguments<T> a) {
  wait_for_earlier_launch();
  const LoraExpandTile tile = a.tables.expand_tiles[blockIdx.x];
  const int slice = blockIdx.z, out = blockIdx.y * kThreads + threadIdx.x;
  if (out >= a.out[slice]) return;
  T* y = a.y[slice] + tile.token_begin * a.y_stride[slice] + out;
  for (int row = 0; row < tile.tokens; ++row, y += a.y_stride[slice])
    *y = from_float<T>(expanded(a, tile, slice, row, out));
}

// The same for gate and up, slices 0 and 1, with the activation.
template <typename T>
__global__ void __launch_bounds__(kThreads) gated_kernel(LoraArguments<T> a, LoraGate gate) {
  wait_for_earlier_launch();
  const LoraExpandTile tile = a.tables.expand_tiles[blockIdx.x];
  const int out = blockIdx.y * kThreads + threadIdx.x, outs = a.out[0];
  if (out >= outs) return;
  T* to = static_cast<T*>(gate.out) + static_cast<int64_t>(tile.token_begin) * outs + out;
  for (int row = 0; row < tile.tokens; ++row, to += outs) {
    const float value = to_float(from_float<T>(expanded(a, tile, 0, row, out)));
    const float factor = to_float(from_float<T>(expanded(a, tile, 1, row, out)));
    *to = from_float<T>(activated(gate.activation, value) * factor);
  }
}

}  // namespace

Status lora_shrink_plain(const LoraCall& call, const LoraTiles& tiles, void* workspace,
                         Stream stream) {
  return with_type(call.dtype, [&](auto type) {
    using T = decltype(type);
    const dim3 grid(call.sizes.shrink_tiles, tiles.shrink.splits, call.slice_count);
    return launch(shrink_kernel<T>, grid, kThreads, 0, stream,
                  lora_arguments<T>(call, tiles, workspace));
  });
}

Status lora_expand_plain(const LoraCall& call, const LoraTiles& tiles, void* workspace,
                         Stream stream) {
  int most_outs = 0;
  for (int i = 0; i < call.slice_count; ++i) most_outs = std::max(most_outs, call.slices[i].out);
  const dim3 grid(call.sizes.expand_tiles, ceil_div(most_outs, kThreads), call.slice_count);
  return launch(expand_kernel<float>, grid, kThreads, 0, stream,
                lora_arguments<float>(call, tiles, workspace));
}

Status lora_expand_gated_plain(const LoraCall& call, const LoraGate& gate, const LoraTiles& tiles,
                               void* workspace, Stream stream) {
  const dim3 grid(call.sizes.all_tiles, ceil_div(call.slices[0].out, kThreads));
  return launch(gated_kernel<float>, grid, kThreads, 0, stream,
                lora_arguments<float>(call, tiles, workspace), gate);
}

}  // namespace valora::kernels::cuda
