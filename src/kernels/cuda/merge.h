// Merges adapters into weights (VaLoRA §4.4.1): merged = weight + coefficient · B A for many
// linears in one launch. Sums are in fp32 and rounded once.
#pragma once

#include <vector>

#include "kernels/cuda/integer_matrix.h"
#include "kernels/cuda/lora.h"
#include "kernels/tiles/cuda_tile.h"

namespace valora::kernels::cuda {

// One linear. weight, merged: [out, in], row-major, contiguous; merged may equal weight. in and out
// are the module's; its scale is not applied.
struct MergeItem {
  const void* weight = nullptr;  // null: the weight is in integers
  void* merged = nullptr;
  DeviceLoraModule module;
  float coefficient = 1;
  IntegerMatrix integers = {};
};

// The table of a launch, built on the host and then copied to the device.
struct DeviceMerge {
  MergeItem item;
  int64_t first_tile = 0;  // number of tiles in all preceding linears
};

struct MergePlan {
  std::vector<DeviceMerge> merges;
  int64_t tiles = 0;
  // All rows begin 16-byte aligned, as the tensor-core kernel requires.
  bool aligned = true;
  int bits = 0;      // of the weights' integers; 0: the weights are floats
  int max_rank = 0;  // of any linear
  CudaTile tile;     // as it runs
};
// The shape by which a launch's tile is chosen.
ProductShape merge_shape(Dtype dtype, const MergeItem* items, size_t count, CudaArch arch);
// The weights of all items of a launch are floats, or integers of the same bits. Any tile gives the
// same results.
MergePlan plan_merge(Dtype dtype, const MergeItem* items, size_t count, const CudaTile& tile);

// merges: device copy of plan.merges.
Status merge(Dtype dtype, const MergePlan& plan, const DeviceMerge* merges, Stream stream);

}  // namespace valora::kernels::cuda
