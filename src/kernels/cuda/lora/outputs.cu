#include <algorithm>

#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/output_change.h"

namespace valora::kernels::cuda {
namespace {

constexpr int kThreads = 128;

// One thread per output and tile of tokens. blockIdx: tile, outputs, slice. The changes of all
// segments that cover the tile are one product and one sum.
template <typename T>
__global__ void __launch_bounds__(kThreads) change_kernel(OutputCall a) {
  wait_for_earlier_launch();
  const LoraExpandTile tile = a.tables.tiles[blockIdx.x];
  OutputSlice slice = a.slices[0];
#pragma unroll
  for (int i = 1; i < kMaxLoraSlices; ++i)
    if (blockIdx.z == static_cast<unsigned>(i)) slice = a.slices[i];
  const int out = blockIdx.y * kThreads + threadIdx.x;
  if (out >= slice.out || slice.module < 0) return;
  const float bias =
      slice.bias == nullptr ? 0.0f : to_float(static_cast<const T*>(slice.bias)[out]);
  float product = 1, sum = 0;
  bool changed = false;
  for (int c = 0; c < tile.covers; ++c) {
    const DeviceOutputSegment segment = a.tables.segments[a.tables.covers[tile.first_cover + c]];
    const DeviceOutputChange change = segment.modules[slice.module];
    if (change.gain != nullptr) {
      const float gain = change.gain[out];
      product *= gain;
      sum = gain * (sum - bias) + bias;
      changed = true;
    }
    if (change.shift != nullptr) {
      sum += segment.coefficient * change.shift[out];
      changed = true;
    }
  }
  if (!changed) return;
  T* y = static_cast<T*>(slice.y) + tile.token_begin * slice.y_stride + out;
  for (int row = 0; row < tile.tokens; ++row, y += slice.y_stride)
    *y = from_float<T>(product * to_float(*y) + sum);
}

}  // namespace

Status change_outputs(const OutputCall& call, Stream stream) {
  int most_outs = 0;
  for (int i = 0; i < call.slice_count; ++i) most_outs = std::max(most_outs, call.slices[i].out);
  if (call.tiles == 0 || most_outs == 0) return cudaSuccess;
  return with_type(call.dtype, [&](auto type) {
    using T = decltype(type);
    const dim3 grid(call.tiles, ceil_div(most_outs, kThreads), call.slice_count);
    return launch(change_kernel<T>, grid, kThreads, 0, stream, call);
  });
}

}  // namespace valora::kernels::cuda
