#include "ops/attention/attention.h"

#include "kernels/cuda/attention.h"
#include "ops/attention/attention_targets.h"
#include "ops/attention/heads.h"
#include "ops/device/dispatch.h"
#include "ops/device/huge_memory.h"
#include "ops/elementwise/elementwise_targets.h"
#include "ops/elementwise/gradient.h"

namespace valora::ops {

namespace {

constexpr int64_t kWidestHead = 256;  // that kernels/cuda supports

bool in_panels(const KvShape& shape, at::Device device) {
  return target_of(shape.dtype, device) == Target::kCpu;
}

at::ScalarType stored_dtype(const KvShape& shape) {
  return kernels::in_bytes(shape.format) ? at::kByte : shape.dtype;
}

// Elements, of stored_dtype(), per layer of a block.
int64_t layer_elements(const KvShape& shape, at::Device device) {
  TORCH_CHECK(serves_kv_format(shape.format, shape.dtype, device),
              "a KV cache in 8 bits needs the native kernels");
  TORCH_CHECK(!kernels::in_bytes(shape.format) || device.is_cpu() || shape.dim <= kWidestHead,
              "a KV cache in 8 bits with heads of ", shape.dim, " on a GPU; its kernels take ",
              kWidestHead);
  if (!in_panels(shape, device))
    return kernels::cuda::kv_layer_elements(shape.kv_heads, shape.dim, shape.format);
  return kernels::in_bytes(shape.format)
             ? kv_layer_bytes_cpu(shape.kv_heads, shape.dim)
             : kv_layer_elements_cpu(shape.kv_heads, shape.dim, shape.dtype);
}

// Joint keys beyond the step's end would be read before they are written.
void check_joint(const QuerySpan& span) {
  const int64_t end = span.context + span.queries;
  for (const PositionRange& range : span.joint)
    TORCH_CHECK(range.begin >= end || range.end <= end || range.end <= span.context,
                "paged_attention: a step ends at position ", end, ", within the joint range ",
                range.begin, " to ", range.end);
}

void check_paged(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                 const KvArena& arena, std::span<const QuerySpan> spans,
                 const AttentionRule& rule) {
  TORCH_CHECK(q.dim() == 3 && k.sizes() == v.sizes() && k.size(0) == q.size(0) &&
                  k.size(1) == arena.kv_heads() && k.size(2) == arena.dim() &&
                  q.size(2) == k.size(2) && q.size(1) % k.size(1) == 0,
              "paged_attention: q ", q.sizes(), ", k ", k.sizes(), ", a cache of ",
              arena.kv_heads(), " heads of ", arena.dim());
  TORCH_CHECK(
      has_contiguous_heads(q) && has_contiguous_heads(k) && has_contiguous_heads(v) &&
          arena.dtype() == q.scalar_type(),
      "paged_attention: q, k, v must have their heads side by side and be of the cache's dtype");
  TORCH_CHECK(rule.window >= 0, "paged_attention: a window of ", rule.window);
  for (const QuerySpan& span : spans) check_joint(span);
}

// True if GPU kernels compute the attention; otherwise ATen does, or the kernels of the arena's
// layout.
bool on_cuda_kernels(const at::Tensor& q, const KvArena& arena) {
  return arena.form() == WeightForm::kPlain && target_of(q) == Target::kCuda &&
         arena.dim() <= kWidestHead;
}

at::Tensor attention_on_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const RotaryOfStep* rotary, const KvArena& arena, int64_t layer,
                             std::span<const QuerySpan> spans, const AttentionRule& rule,
                             SpanTables* tables) {
  SpanTables own;
  return paged_attention_cuda(q, k, v, rotary, arena, layer, spans, rule, tables ? *tables : own);
}

}  // namespace

bool serves_kv_format(KvFormat format, at::ScalarType dtype, at::Device device) {
  return !kernels::in_bytes(format) || target_of(dtype, device) != Target::kAten;
}

KvArena::KvArena(int64_t blocks, const KvShape& shape, at::Device device)
    : form_(in_panels(shape, device) ? WeightForm::kPanels : WeightForm::kPlain), shape_(shape) {
  // Zeros: values past the end of a sequence are read and masked, so they must not be NaN.
  const int64_t elements = layer_elements(shape, device);
  const at::ScalarType stored = stored_dtype(shape);
  data_ =
      form_ == WeightForm::kPanels
          ? huge_zeros(blocks * shape.layers * elements, stored).view({blocks, shape.layers, -1})
          : at::zeros({blocks, shape.layers, elements},
                      at::TensorOptions().dtype(stored).device(device));
  name_sizes();
}

KvArena::KvArena(const PoolMemory& pool, const KvShape& shape, at::Device device)
    : form_(in_panels(shape, device) ? WeightForm::kPanels : WeightForm::kPlain), shape_(shape) {
  const int64_t elements = layer_elements(shape, device);
  const at::Tensor blocks = pool.as(stored_dtype(shape));
  TORCH_CHECK(blocks.size(1) >= shape.layers * elements, "a cache of ", shape.layers, " layers of ",
              elements, " elements in blocks of ", blocks.size(1));
  data_ =
      blocks.as_strided({blocks.size(0), shape.layers, elements}, {blocks.size(1), elements, 1});
  name_sizes();
}

void KvArena::name_sizes() {
  if (form_ == WeightForm::kPlain && !kernels::in_bytes(shape_.format))
    data_ = data_.unflatten(2, {2, kBlockTokens, shape_.kv_heads, shape_.dim});
}

int64_t KvArena::block_bytes(const KvShape& shape, at::Device device) {
  return shape.layers * layer_elements(shape, device) *
         static_cast<int64_t>(c10::elementSize(stored_dtype(shape)));
}

at::Tensor paged_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const KvArena& arena, int64_t layer, std::span<const QuerySpan> spans,
                           const AttentionRule& rule, SpanTables* tables) {
  check_paged(q, k, v, arena, spans, rule);
  if (on_cuda_kernels(q, arena))
    return attention_on_cuda(q, k, v, nullptr, arena, layer, spans, rule, tables);
  return arena.form() == WeightForm::kPanels
             ? paged_attention_cpu(q, k, v, arena, layer, spans, rule)
             : paged_attention_aten(q, k, v, arena, layer, spans, rule);
}

at::Tensor rotated_paged_attention(at::Tensor q, at::Tensor k, const at::Tensor& v,
                                   const RotaryAngles& of_queries, const RotaryAngles& of_keys,
                                   const KvArena& arena, int64_t layer,
                                   std::span<const QuerySpan> spans, const AttentionRule& rule,
                                   SpanTables* tables) {
  if (!on_cuda_kernels(q, arena)) {
    rotate_half(q, of_queries.cos, of_queries.sin);
    rotate_half(k, of_keys.cos, of_keys.sin);
    return paged_attention(q, k, v, arena, layer, spans, rule, tables);
  }
  check_paged(q, k, v, arena, spans, rule);
  check_rotary(q, of_queries.cos, of_queries.sin);
  check_rotary(k, of_keys.cos, of_keys.sin);
  TORCH_CHECK(of_queries.cos.sizes() == of_keys.cos.sizes(), "rotated_paged_attention: angles ",
              of_queries.cos.sizes(), " and ", of_keys.cos.sizes());
  const RotaryOfStep rotary{of_queries, of_keys};
  return attention_on_cuda(q, k, v, &rotary, arena, layer, spans, rule, tables);
}

}  // namespace valora::ops
