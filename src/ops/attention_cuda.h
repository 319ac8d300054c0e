// What paged_attention_cuda() reads of a step, for the *_cuda.cc files.
#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "kernels/cuda/attention.h"
#include "ops/attention.h"
#include "ops/device_tables.h"

namespace valora::ops {

struct DeviceSpanTables {
  kernels::cuda::AttentionShape shape;
  kernels::cuda::AttentionSizes sizes;
  kernels::cuda::AttentionTables tables;
  DeviceTables memory;  // of the tables
  at::Tensor workspace;
};

// rows_aligned: whether all rows of q, k and v begin 16-byte aligned.
kernels::cuda::AttentionShape attention_shape(const KvArena& arena, int64_t heads,
                                              bool rows_aligned);
// Points the tables to where a plan's arrays lie on the device.
struct SpanOffsets {
  size_t spans, block_tables, slots, tiles;
  std::optional<size_t> counters;  // absent: another launch merges the parts of decodes
};
SpanOffsets add_tables(const kernels::cuda::AttentionPlan& plan, int32_t kv_heads,
                       DeviceTables& memory);
// The same without the block tables, whose offset is left open.
SpanOffsets add_fixed_tables(const kernels::cuda::AttentionPlan& plan, int32_t kv_heads,
                             DeviceTables& memory);
kernels::cuda::AttentionTables tables_at(const SpanOffsets& offsets, const DeviceTables& memory);
at::Tensor attention_workspace(const kernels::cuda::AttentionShape& shape,
                               const kernels::cuda::AttentionSizes& sizes, at::Device device);

}  // namespace valora::ops
