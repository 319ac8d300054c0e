#include "kernels/cuda/attention.h"

#include "ops/attention_targets.h"
#include "ops/cuda_types.h"
#include "ops/device_tables.h"

namespace valora::ops {

struct DeviceSpanTables {
  kernels::cuda::AttentionShape shape;
  kernels::cuda::AttentionSizes sizes;
  kernels::cuda::AttentionTables tables;
  DeviceTables memory;  // of the tables
  at::Tensor workspace;
};

namespace {

using kernels::cuda::AttentionPlan;
using kernels::cuda::AttentionShape;
using kernels::cuda::TokenRows;

constexpr uintptr_t kVector = 16;  // bytes per access of the fast kernels

bool aligned(const void* data, int64_t stride_bytes) {
  return (reinterpret_cast<uintptr_t>(data) | static_cast<uintptr_t>(stride_bytes)) % kVector == 0;
}
bool aligned(const at::Tensor& rows) {
  return aligned(rows.const_data_ptr(),
                 rows.stride(0) * static_cast<int64_t>(rows.element_size()));
}

TokenRows rows_of(const at::Tensor& x) { return {x.const_data_ptr(), x.stride(0)}; }

std::shared_ptr<DeviceSpanTables> make_tables(const AttentionShape& shape,
                                              std::span<const QuerySpan> spans, int64_t tokens,
                                              at::Device device) {
  const AttentionPlan plan =
      kernels::cuda::plan_attention(shape, spans.data(), spans.size(), tokens);
  auto tables = std::make_shared<DeviceSpanTables>();
  tables->shape = shape;
  tables->sizes = plan.sizes;
  DeviceTables& memory = tables->memory;
  const size_t span_table = memory.add(plan.spans), blocks = memory.add(plan.block_tables),
               slots = memory.add(plan.slots), tiles = memory.add(plan.tiles);
  memory.copy_to(device);
  tables->tables = {
      memory.at<kernels::cuda::DeviceSpan>(span_table), memory.at<int32_t>(blocks),
      memory.at<int64_t>(slots), memory.at<kernels::cuda::AttentionTile>(tiles)};
  const size_t bytes =
      kernels::cuda::attention_workspace_bytes(plan.sizes, shape.kv_heads, shape.dim);
  tables->workspace = at::empty({static_cast<int64_t>(bytes)},
                                at::TensorOptions().dtype(at::kByte).device(device));
  return tables;
}

}  // namespace

at::Tensor paged_attention_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const KvArena& arena, int64_t layer,
                                std::span<const QuerySpan> spans, SpanTables& tables) {
  const at::Tensor& cache = arena.data();
  const kernels::cuda::KvCache view{cache.data_ptr(),
                                    cache.stride(0),
                                    layer * cache.stride(1),
                                    static_cast<int32_t>(arena.kv_heads()),
                                    static_cast<int32_t>(arena.dim()),
                                    cuda_dtype(cache.scalar_type())};
  const auto element = static_cast<int64_t>(cache.element_size());
  const bool fast = aligned(q) && aligned(k) && aligned(v) &&
                    aligned(cache.const_data_ptr(), cache.stride(0) * element) &&
                    aligned(nullptr, cache.stride(1) * element) &&
                    aligned(nullptr, arena.dim() * element);
  if (!tables.on_device || tables.on_device->shape.aligned != fast)
    tables.on_device = make_tables(
        {static_cast<int32_t>(q.size(1)), view.kv_heads, view.dim, view.dtype, fast,
         multiprocessors()},
        spans, q.size(0), q.device());
  const DeviceSpanTables& step = *tables.on_device;
  const at::Tensor out = at::empty({q.size(0), q.size(1) * q.size(2)}, q.options());
  const kernels::cuda::Stream stream = stream_of(q);
  check_launch(kernels::cuda::store_kv(view, rows_of(k), rows_of(v), step.tables.slots, q.size(0),
                                       stream),
               "store_kv");
  check_launch(kernels::cuda::paged_attention(view, rows_of(q), static_cast<int32_t>(q.size(1)),
                                              out.data_ptr(), step.sizes, step.tables,
                                              step.workspace.data_ptr(), stream),
               "paged_attention");
  return out;
}

}  // namespace valora::ops
