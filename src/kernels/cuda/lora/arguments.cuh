// The arguments of the LoRA kernels and how they locate their data.
#pragma once

#include <type_traits>

#include "kernels/cuda/device/factor.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/vector.cuh"
#include "kernels/cuda/lora.h"

namespace valora::kernels::cuda {

template <typename T>
struct LoraArguments {
  const T* x;
  int64_t x_stride;
  int in;
  T* y[kMaxLoraSlices];
  const float* sums[kMaxLoraSlices];
  int64_t y_stride[kMaxLoraSlices];
  int out[kMaxLoraSlices];
  int module[kMaxLoraSlices];
  bool y_vectors[kMaxLoraSlices];  // 16-byte accesses to y are allowed
  LoraTables tables;
  // [slices, splits, rows, rank_stride]
  float* low;
  int splits, rows, rank_stride;
};

template <typename T>
LoraArguments<T> lora_arguments(const LoraCall& call, const LoraTiles& tiles, void* workspace) {
  LoraArguments<T> a{};
  a.x = static_cast<const T*>(call.x), a.x_stride = call.x_stride, a.in = call.in;
  for (int i = 0; i < call.slice_count; ++i) {
    const LoraSlice& slice = call.slices[i];
    a.y[i] = static_cast<T*>(slice.y), a.y_stride[i] = slice.y_stride;
    a.sums[i] = slice.sums;
    a.out[i] = slice.out, a.module[i] = slice.module;
    a.y_vectors[i] = whole_vectors<T>({slice.out, slice.y_stride}) && aligned16({slice.y});
  }
  a.tables = call.tables;
  a.low = static_cast<float*>(workspace);
  a.splits = tiles.shrink.splits, a.rows = call.sizes.rows;
  a.rank_stride = ceil_div(call.max_rank, 8) * 8;
  return a;
}

template <typename T>
__device__ float* low_row(const LoraArguments<T>& a, int slice, int split, int row) {
  return a.low + ((static_cast<int64_t>(slice) * a.splits + split) * a.rows + row) * a.rank_stride;
}

// A segment's factors for a slice; rank 0 if the slice cannot have adapters.
__device__ inline DeviceLoraModule module_of(const DeviceLoraSegment& segment, int module) {
  return module < 0 ? DeviceLoraModule{} : segment.modules[module];
}

// Calls body(std::integral_constant) with the last of kFirst, kRest... that is at most `value`, or
// else with the first.
template <int kFirst, int... kRest, typename Body>
Status with_nearest(int value, const Body& body) {
  if constexpr (sizeof...(kRest) > 0) {
    constexpr int kNext[] = {kRest...};
    if (value >= kNext[0]) return with_nearest<kRest...>(value, body);
  }
  return body(std::integral_constant<int, kFirst>{});
}

// Versions without tensor cores, for fp32 and sizes that are not multiples of 8.
Status lora_shrink_plain(const LoraCall& call, const LoraTiles& tiles, void* workspace,
                         Stream stream);
Status lora_expand_plain(const LoraCall& call, const LoraTiles& tiles, void* workspace,
                         Stream stream);
Status lora_expand_gated_plain(const LoraCall& call, const LoraGate& gate, const LoraTiles& tiles,
                               void* workspace, Stream stream);

}  // namespace valora::kernels::cuda
