// Adapters merged into weights (VaLoRA §4.4.1): merged = weight + coefficient · B A for many
// linears in one launch. Sums are in fp32, rounded once.
#pragma once

#include <vector>

#include "kernels/cuda/lora.h"

namespace valora::kernels::cuda {

// One linear. weight, merged: [out, in], row-major, contiguous; merged may be weight. in and out
// are those of the module; its scale is not applied.
struct MergeItem {
  const void* weight = nullptr;
  void* merged = nullptr;
  DeviceLoraModule module;
  float coefficient = 1;
};

// The table of a launch: built on the host, then copied to the device.
struct DeviceMerge {
  MergeItem item;
  int64_t first_tile = 0;  // tiles of all linears before
};

struct MergePlan {
  std::vector<DeviceMerge> merges;
  int64_t tiles = 0;
  // Whether all rows begin 16-byte aligned, as the tensor-core kernel needs.
  bool aligned = true;
};
MergePlan plan_merge(Dtype dtype, const MergeItem* items, size_t count);

// merges: device copy of plan.merges.
Status merge(Dtype dtype, const MergePlan& plan, const DeviceMerge* merges, Stream stream);

}  // namespace valora::kernels::cuda
