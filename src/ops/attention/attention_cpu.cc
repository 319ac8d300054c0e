#include <cmath>

#include "kernels/cpu/attention/runs.h"
#include "ops/attention/attention_targets.h"
#include "ops/device/cpu_types.h"
#include "ops/device/parallel.h"

namespace valora::ops {
namespace {

float scale_of(int64_t dim, const AttentionRule& rule = {}) {
  return rule.scale > 0 ? static_cast<float>(rule.scale)
                        : 1.0f / std::sqrt(static_cast<float>(dim));
}

template <typename T>
kernels::Heads<const T> heads_of(const at::Tensor& x) {
  return {raw<T>(x), x.stride(0)};
}

}  // namespace

int64_t kv_layer_elements_cpu(int64_t kv_heads, int64_t dim, at::ScalarType dtype) {
  return with_cpu_type(dtype,
                       [&](auto t) { return kernels::kv_elements<decltype(t)>(kv_heads, dim); });
}

int64_t kv_layer_bytes_cpu(int64_t kv_heads, int64_t dim) {
  return kernels::kv_bytes(kv_heads, dim);
}

at::Tensor paged_attention_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const KvArena& arena, int64_t layer,
                               std::span<const QuerySpan> spans, const AttentionRule& rule) {
  const at::Tensor out = at::empty({q.size(0), q.size(1) * q.size(2)}, q.options());
  with_cpu_type(q, [&](auto t) {
    using T = decltype(t);
    const at::Tensor part = arena.data().select(1, layer);
    if (kernels::in_bytes(arena.format())) {
      const kernels::ByteKvLayer view{raw<uint8_t>(part), part.stride(0), arena.kv_heads(),
                                      arena.dim(), arena.format()};
      kernels::store_kv_bytes<T>(raw<T>(k), k.stride(0), raw<T>(v), v.stride(0), spans, view,
                                 torch_parallel());
      kernels::paged_attention<T>(heads_of<T>(q), {raw<T>(out), out.stride(0)}, q.size(1),
                                  scale_of(q.size(2), rule), rule.window, spans, view,
                                  torch_parallel());
      return;
    }
    const kernels::KvLayer<T> view{raw<T>(part), part.stride(0), arena.kv_heads(), arena.dim()};
    kernels::store_kv<T>(raw<T>(k), k.stride(0), raw<T>(v), v.stride(0), spans, view,
                         torch_parallel());
    kernels::paged_attention<T>(heads_of<T>(q), {raw<T>(out), out.stride(0)}, q.size(1),
                                scale_of(q.size(2), rule), rule.window, spans, view,
                                torch_parallel());
  });
  return out;
}

void store_runs_cpu(const at::Tensor& k, const at::Tensor& v, int64_t begin,
                    const kernels::Runs& runs, const at::Tensor& packed) {
  with_cpu_type(k, [&](auto t) {
    using T = decltype(t);
    kernels::store_runs<T>(heads_of<T>(k), heads_of<T>(v), begin, k.size(0),
                           {runs, raw<T>(packed), k.size(1), k.size(2)}, torch_parallel());
  });
}

at::Tensor attend_runs_cpu(const at::Tensor& q, int64_t begin, const kernels::Runs& runs,
                           const at::Tensor& packed) {
  const at::Tensor out = at::empty({q.size(0), q.size(1) * q.size(2)}, q.options());
  with_cpu_type(q, [&](auto t) {
    using T = decltype(t);
    kernels::attend_runs<T>(heads_of<T>(q), {raw<T>(out), out.stride(0)}, begin, q.size(0),
                            scale_of(q.size(2)), {runs, raw<T>(packed), q.size(1), q.size(2)},
                            torch_parallel());
  });
  return out;
}

}  // namespace valora::ops
