#include "ops/attention.h"

#include <cmath>

#include "kernels/cpu/attention/attention.h"
#include "ops/attention_aten.h"
#include "ops/cpu_dispatch.h"
#include "ops/gradient.h"
#include "ops/huge_memory.h"
#include "ops/parallel.h"

namespace valora::ops {
namespace {

// Elements of one layer of a block.
int64_t layer_elements(int64_t kv_heads, int64_t dim, at::ScalarType dtype, bool in_panels) {
  if (!in_panels) return 2 * KvArena::kBlockTokens * kv_heads * dim;
  return dtype == at::kFloat ? kernels::kv_elements<float>(kv_heads, dim)
                             : kernels::kv_elements<kernels::bf16>(kv_heads, dim);
}

float scale_of(int64_t dim) { return 1.0f / std::sqrt(static_cast<float>(dim)); }

template <typename T>
kernels::Heads<const T> heads_of(const at::Tensor& x) {
  return {raw<T>(x), x.stride(0)};
}

}  // namespace

KvArena::KvArena(int64_t blocks, int64_t layers, int64_t kv_heads, int64_t dim,
                 at::ScalarType dtype, at::Device device)
    : in_panels_(on_cpu_kernel(dtype, device)), kv_heads_(kv_heads), dim_(dim) {
  // Zeros: what is read behind a sequence's end is masked, but must not be NaN.
  data_ = in_panels_
              ? huge_zeros(blocks * layers * layer_elements(kv_heads, dim, dtype, true), dtype)
                    .view({blocks, layers, -1})
              : at::zeros({blocks, layers, 2, kBlockTokens, kv_heads, dim},
                          at::TensorOptions().dtype(dtype).device(device));
}

int64_t KvArena::block_bytes(int64_t layers, int64_t kv_heads, int64_t dim, at::ScalarType dtype,
                             at::Device device) {
  return layers * layer_elements(kv_heads, dim, dtype, on_cpu_kernel(dtype, device)) *
         static_cast<int64_t>(c10::elementSize(dtype));
}

at::Tensor paged_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const KvArena& arena, int64_t layer, std::span<const QuerySpan> spans) {
  TORCH_CHECK(q.dim() == 3 && k.sizes() == v.sizes() && k.size(0) == q.size(0) &&
                  k.size(1) == arena.kv_heads() && k.size(2) == arena.dim() &&
                  q.size(2) == k.size(2) && q.size(1) % k.size(1) == 0,
              "paged_attention: q ", q.sizes(), ", k ", k.sizes(), ", a cache of ",
              arena.kv_heads(), " heads of ", arena.dim());
  TORCH_CHECK(
      heads_side_by_side(q) && heads_side_by_side(k) && heads_side_by_side(v) &&
          arena.data().scalar_type() == q.scalar_type(),
      "paged_attention: q, k, v must have their heads side by side and be of the cache's dtype");
  if (!arena.in_panels())
    return paged_attention_aten(q, k, v, arena.data().select(1, layer), spans);
  const at::Tensor out = at::empty({q.size(0), q.size(1) * q.size(2)}, q.options());
  dispatch_cpu(q, [&](auto t) {
    using T = decltype(t);
    const at::Tensor part = arena.data().select(1, layer);
    const kernels::KvLayer<T> view{raw<T>(part), part.stride(0), arena.kv_heads(), arena.dim()};
    kernels::store_kv<T>(raw<T>(k), k.stride(0), raw<T>(v), v.stride(0), spans, view,
                         torch_parallel());
    kernels::paged_attention<T>(heads_of<T>(q), {raw<T>(out), out.stride(0)}, q.size(1),
                                scale_of(q.size(2)), spans, view, torch_parallel());
  });
  return out;
}

at::Tensor block_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           std::span<const int64_t> ends) {
  const int64_t covered = ends.empty() ? 0 : ends.back();
  TORCH_CHECK(covered == q.size(0), "block_attention: the runs end at ", covered, " of ", q.size(0),
              " rows");
  if (!on_cpu_kernel(q) || wants_gradient(q) || !heads_side_by_side(q) || !heads_side_by_side(k) ||
      !heads_side_by_side(v))
    return block_attention_aten(q, k, v, ends);
  const at::Tensor out = at::empty({q.size(0), q.size(1) * q.size(2)}, q.options());
  dispatch_cpu(q, [&](auto t) {
    using T = decltype(t);
    kernels::block_attention<T>(heads_of<T>(q), heads_of<T>(k), heads_of<T>(v),
                                {raw<T>(out), out.stride(0)}, q.size(1), q.size(2),
                                scale_of(q.size(2)), ends, torch_parallel());
  });
  return out;
}

}  // namespace valora::ops
