// What a merge of a given size works on, for measuring tiles of merges.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "kernels/cuda/merge.h"
#include "ops/step/device_tables.h"

namespace valora::ops {

// A merge's table for one tile.
struct MergeTable {
  kernels::cuda::MergePlan plan;
  DeviceTables memory;
  size_t offset = 0;

  const kernels::cuda::DeviceMerge* merges() const {
    return memory.at<kernels::cuda::DeviceMerge>(offset);
  }
};

// Linears of 4,096 inputs in bf16, with as many weights as the shape but no more than 16 linears of
// 4,096 outputs, and an adapter of the shape's rank. The results are apart from the weights.
class MergeOperands {
 public:
  MergeOperands(const kernels::ProductShape& shape, at::Device device);
  // Starts copying the table to the device. The operands must outlive its use.
  MergeTable table(const kernels::CudaTile& tile) const;

 private:
  at::Tensor weights_, merged_, factors_;
  std::vector<kernels::cuda::MergeItem> items_;
};

}  // namespace valora::ops
