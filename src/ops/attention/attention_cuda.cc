#include "ops/attention/attention_cuda.h"

#include "ops/attention/attention_targets.h"
#include "ops/device/cuda_types.h"
#include "ops/elementwise/elementwise_targets.h"
#include "ops/launch/compared_launches.h"

namespace valora::ops {
namespace {

using kernels::cuda::AttentionPlan;
using kernels::cuda::AttentionShape;

constexpr uintptr_t kVector = 16;  // bytes per access in the fast kernels

bool aligned(const void* data, int64_t stride_bytes) {
  return (reinterpret_cast<uintptr_t>(data) | static_cast<uintptr_t>(stride_bytes)) % kVector == 0;
}
bool aligned(const at::Tensor& rows) {
  return aligned(rows.const_data_ptr(), rows.stride(0) * static_cast<int64_t>(rows.element_size()));
}

kernels::cuda::Angles angles_of(const RotaryAngles& angles) {
  return {angles.cos.const_data_ptr<float>(), angles.sin.const_data_ptr<float>()};
}

// Stores keys and values in the cache. rotary: as in paged_attention_cuda().
void store(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
           const RotaryOfStep* rotary, const kernels::cuda::KvCache& cache, const int64_t* slots) {
  kernels::cuda::Stream stream = stream_of(q);
  if (rotary && !separate_launches().rotation && !kernels::in_bytes(cache.format)) {
    const kernels::cuda::Heads queries{q.data_ptr(), q.stride(0), static_cast<int32_t>(q.size(1))};
    check_launch(kernels::cuda::rotate_and_store(
                     cache, queries, token_rows(k), token_rows(v), angles_of(rotary->queries),
                     angles_of(rotary->keys), static_cast<int32_t>(2 * rotary->keys.cos.size(1)),
                     slots, q.size(0), stream),
                 "rotate_and_store");
    return;
  }
  if (rotary) {
    at::Tensor queries = q, keys = k;
    rotate_half_cuda(queries, rotary->queries.cos, rotary->queries.sin);
    rotate_half_cuda(keys, rotary->keys.cos, rotary->keys.sin);
  }
  check_launch(
      kernels::cuda::store_kv(cache, token_rows(k), token_rows(v), slots, q.size(0), stream),
      "store_kv");
}

at::Tensor device_bytes(size_t bytes, at::Device device) {
  return at::empty({static_cast<int64_t>(bytes)},
                   at::TensorOptions().dtype(at::kByte).device(device));
}

std::shared_ptr<DeviceSpanTables> make_tables(const AttentionShape& shape,
                                              std::span<const QuerySpan> spans, int64_t tokens,
                                              at::Device device) {
  const AttentionPlan plan =
      kernels::cuda::plan_attention(shape, spans.data(), spans.size(), tokens);
  auto tables = std::make_shared<DeviceSpanTables>();
  tables->shape = shape;
  tables->sizes = plan.sizes;
  const SpanOffsets offsets = add_tables(plan, shape.kv_heads, tables->memory);
  tables->memory.copy_to(device);
  tables->tables = tables_at(offsets, tables->memory);
  tables->workspace = attention_workspace(shape, plan.sizes, device);
  tables->prompt_parts = device_bytes(prompt_workspace_bytes(shape, plan.sizes), device);
  tables->tables.prompt_parts = tables->prompt_parts.data_ptr();
  return tables;
}

}  // namespace

AttentionShape attention_shape(const KvArena& arena, int64_t heads, bool rows_aligned) {
  const at::Tensor& cache = arena.data();
  const auto element = static_cast<int64_t>(cache.element_size()),
             of_rows = static_cast<int64_t>(c10::elementSize(arena.dtype()));
  const bool fast = rows_aligned && aligned(cache.const_data_ptr(), cache.stride(0) * element) &&
                    aligned(nullptr, cache.stride(1) * element) &&
                    aligned(nullptr, arena.dim() * of_rows);
  return {static_cast<int32_t>(heads),
          static_cast<int32_t>(arena.kv_heads()),
          static_cast<int32_t>(arena.dim()),
          cuda_dtype(arena.dtype()),
          fast,
          multiprocessors(),
          shared_bytes(),
          prompts_by_flashinfer() && !kernels::in_bytes(arena.format()),
          is_hopper()};
}

SpanOffsets add_tables(const AttentionPlan& plan, int32_t kv_heads, DeviceTables& memory) {
  SpanOffsets offsets = add_fixed_tables(plan, kv_heads, memory);
  offsets.block_tables = memory.add(plan.block_tables);
  return offsets;
}

SpanOffsets add_fixed_tables(const AttentionPlan& plan, int32_t kv_heads, DeviceTables& memory) {
  SpanOffsets offsets{};
  offsets.spans = memory.add(plan.spans);
  offsets.slots = memory.add(plan.slots);
  offsets.tiles = memory.add(plan.tiles);
  if (!separate_launches().merge)
    offsets.counters = memory.add(
        std::vector<uint32_t>(kernels::cuda::attention_counters(plan.sizes, kv_heads), 0));
  if (plan.sizes.joint) offsets.ends = memory.add(plan.ends);
  if (!plan.prompts.empty()) offsets.prompts = memory.add(plan.prompts);
  return offsets;
}

kernels::cuda::AttentionTables tables_at(const SpanOffsets& offsets, const DeviceTables& memory) {
  return {
      memory.at<kernels::cuda::DeviceSpan>(offsets.spans),
      memory.at<int32_t>(offsets.block_tables),
      memory.at<int64_t>(offsets.slots),
      memory.at<kernels::cuda::AttentionTile>(offsets.tiles),
      offsets.counters ? const_cast<uint32_t*>(memory.at<uint32_t>(*offsets.counters)) : nullptr,
      offsets.ends ? memory.at<int32_t>(*offsets.ends) : nullptr,
      offsets.prompts ? memory.at<int32_t>(*offsets.prompts) : nullptr};
}

at::Tensor attention_workspace(const AttentionShape& shape,
                               const kernels::cuda::AttentionSizes& sizes, at::Device device) {
  return device_bytes(kernels::cuda::attention_workspace_bytes(sizes, shape.kv_heads, shape.dim),
                      device);
}

size_t prompt_workspace_bytes(const AttentionShape& shape,
                              const kernels::cuda::AttentionSizes& sizes) {
  return kernels::cuda::prompt_workspace_bytes(sizes, shape.heads, shape.dim);
}

at::Tensor paged_attention_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const RotaryOfStep* rotary, const KvArena& arena, int64_t layer,
                                std::span<const QuerySpan> spans, const AttentionRule& rule,
                                SpanTables& tables) {
  const at::Tensor& cache = arena.data();
  const AttentionShape shape =
      attention_shape(arena, q.size(1), aligned(q) && aligned(k) && aligned(v));
  if (!tables.on_device || tables.on_device->shape.aligned != shape.aligned)
    tables.on_device = make_tables(shape, spans, q.size(0), q.device());
  const DeviceSpanTables& step = *tables.on_device;
  const kernels::cuda::KvCache view{cache.data_ptr(), cache.stride(0), layer * cache.stride(1),
                                    shape.kv_heads,   shape.dim,       shape.dtype,
                                    arena.format()};
  const at::Tensor out = at::empty({q.size(0), q.size(1) * q.size(2)}, q.options());
  store(q, k, v, rotary, view, step.tables.slots);
  check_launch(
      kernels::cuda::paged_attention(view, token_rows(q), shape.heads, out.data_ptr(), rule,
                                     kernels::cuda::sizes_in_window(shape, step.sizes, rule.window),
                                     step.tables, step.workspace.data_ptr(), stream_of(q)),
      "paged_attention");
  return out;
}

}  // namespace valora::ops
