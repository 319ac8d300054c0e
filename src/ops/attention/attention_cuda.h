// The step tables read by paged_attention_cuda(), for the *_cuda.cc files.
#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "kernels/cuda/attention.h"
#include "ops/attention/attention.h"
#include "ops/step/device_tables.h"

namespace valora::ops {

struct DeviceSpanTables {
  kernels::cuda::AttentionShape shape;
  kernels::cuda::AttentionSizes sizes;
  kernels::cuda::AttentionTables tables;
  DeviceTables memory;  // holds the tables
  at::Tensor workspace;
  at::Tensor
      prompt_parts;  // undefined if nothing is; may be shared by steps that run one at a time
};

// rows_aligned: true if all rows of q, k and v begin 16-byte aligned.
kernels::cuda::AttentionShape attention_shape(const KvArena& arena, int64_t heads,
                                              bool rows_aligned);
// Byte offsets of a plan's arrays in DeviceTables.
struct SpanOffsets {
  size_t spans, block_tables, slots, tiles;
  std::optional<size_t> counters;  // absent: a separate launch merges the parts of decodes
  std::optional<size_t> ends;      // absent: no query is in a joint range
  std::optional<size_t> prompts;   // absent: prompts are not FlashInfer's
};
SpanOffsets add_tables(const kernels::cuda::AttentionPlan& plan, int32_t kv_heads,
                       DeviceTables& memory);
// The same except block tables, whose offset is left unset.
SpanOffsets add_fixed_tables(const kernels::cuda::AttentionPlan& plan, int32_t kv_heads,
                             DeviceTables& memory);
kernels::cuda::AttentionTables tables_at(const SpanOffsets& offsets, const DeviceTables& memory);
at::Tensor attention_workspace(const kernels::cuda::AttentionShape& shape,
                               const kernels::cuda::AttentionSizes& sizes, at::Device device);
size_t prompt_workspace_bytes(const kernels::cuda::AttentionShape& shape,
                              const kernels::cuda::AttentionSizes& sizes);

}  // namespace valora::ops
