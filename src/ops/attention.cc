#include "ops/attention.h"

#include "ops/attention_targets.h"
#include "ops/dispatch.h"
#include "ops/gradient.h"
#include "ops/heads.h"
#include "ops/huge_memory.h"

namespace valora::ops {

KvArena::KvArena(int64_t blocks, int64_t layers, int64_t kv_heads, int64_t dim,
                 at::ScalarType dtype, at::Device device)
    : form_(target_of(dtype, device) == Target::kCpu ? WeightForm::kPanels : WeightForm::kPlain),
      kv_heads_(kv_heads),
      dim_(dim) {
  // Zeros: values after the end of a sequence are read and masked, so they must not be NaN.
  data_ = form_ == WeightForm::kPanels
              ? huge_zeros(blocks * layers * kv_layer_elements_cpu(kv_heads, dim, dtype), dtype)
                    .view({blocks, layers, -1})
              : at::zeros({blocks, layers, 2, kBlockTokens, kv_heads, dim},
                          at::TensorOptions().dtype(dtype).device(device));
}

KvArena::KvArena(const at::Tensor& pool, int64_t stride, int64_t layers, int64_t kv_heads,
                 int64_t dim)
    : form_(target_of(pool) == Target::kCpu ? WeightForm::kPanels : WeightForm::kPlain),
      kv_heads_(kv_heads),
      dim_(dim) {
  const int64_t elements = block_bytes(layers, kv_heads, dim, pool.scalar_type(), pool.device()) /
                           static_cast<int64_t>(pool.element_size());
  TORCH_CHECK(pool.dim() == 1 && pool.is_contiguous() && stride >= elements,
              "a cache with blocks of ", elements, " elements every ", stride, " elements of ",
              pool.sizes());
  data_ = pool.as_strided({pool.numel() / stride, layers, elements / layers},
                          {stride, elements / layers, 1});
  if (form_ == WeightForm::kPlain) data_ = data_.unflatten(2, {2, kBlockTokens, kv_heads, dim});
}

int64_t KvArena::block_bytes(int64_t layers, int64_t kv_heads, int64_t dim, at::ScalarType dtype,
                             at::Device device) {
  const int64_t elements = target_of(dtype, device) == Target::kCpu
                               ? kv_layer_elements_cpu(kv_heads, dim, dtype)
                               : 2 * kBlockTokens * kv_heads * dim;
  return layers * elements * static_cast<int64_t>(c10::elementSize(dtype));
}

at::Tensor paged_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const KvArena& arena, int64_t layer, std::span<const QuerySpan> spans,
                           int64_t window, SpanTables* tables) {
  TORCH_CHECK(q.dim() == 3 && k.sizes() == v.sizes() && k.size(0) == q.size(0) &&
                  k.size(1) == arena.kv_heads() && k.size(2) == arena.dim() &&
                  q.size(2) == k.size(2) && q.size(1) % k.size(1) == 0,
              "paged_attention: q ", q.sizes(), ", k ", k.sizes(), ", a cache of ",
              arena.kv_heads(), " heads of ", arena.dim());
  TORCH_CHECK(
      heads_side_by_side(q) && heads_side_by_side(k) && heads_side_by_side(v) &&
          arena.data().scalar_type() == q.scalar_type(),
      "paged_attention: q, k, v must have their heads side by side and be of the cache's dtype");
  TORCH_CHECK(window >= 0, "paged_attention: a window of ", window);
  if (arena.form() == WeightForm::kPanels)
    return paged_attention_cpu(q, k, v, arena, layer, spans, window);
  constexpr int64_t kWidestHead = 256;  // of kernels/cuda
  if (target_of(q) == Target::kAten || arena.dim() > kWidestHead)
    return paged_attention_aten(q, k, v, arena, layer, spans, window);
  for (const QuerySpan& span : spans)
    TORCH_CHECK(window == 0 || span.context + span.queries <= window,
                "paged_attention: a window of ", window, " positions in a sequence of ",
                span.context + span.queries, " is not supported on GPUs");
  SpanTables own;
  return paged_attention_cuda(q, k, v, arena, layer, spans, tables ? *tables : own);
}

}  // namespace valora::ops
