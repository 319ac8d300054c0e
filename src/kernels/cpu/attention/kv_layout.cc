#include "kernels/cpu/attention/kv_layout.h"

#include "kernels/cpu/attention/block_parts.h"

namespace valora::kernels {

template <typename T>
void store_token(const T* key, const T* value, int64_t dim, int64_t slot, T* keys, T* values) {
  constexpr int64_t inputs = kVectorInputs<T>;
  for (int64_t i = 0; i < dim; ++i) keys[panel_index<T>(slot, i)] = key[i];
  // The last pair's padding input may hold a NaN from earlier use of the block, and 0 · NaN is NaN.
  if (dim % inputs) keys[panel_index<T>(slot, dim)] = T{};
  const bool opens = inputs == 2 && slot % 2 == 0;
  for (int64_t p = 0; p < panels_of(dim); ++p, values += panel_elements<T>(kBlockTokens))
    for (int64_t j = 0; j < kPanelOutputs; ++j) {
      const int64_t i = p * kPanelOutputs + j;
      values[panel_index<T>(j, slot)] = i < dim ? value[i] : T{};
      if (opens) values[panel_index<T>(j, slot + 1)] = T{};
    }
}

template <typename T>
void store_kv(const T* k, int64_t ldk, const T* v, int64_t ldv, std::span<const QuerySpan> spans,
              const KvLayer<T>& layer, const ParallelFor& parallel) {
  const std::vector<BlockPart> parts = parts_of(spans);
  const int64_t dim = layer.dim, grain = parts_grain(layer.kv_heads * dim);
  parallel(0, static_cast<int64_t>(parts.size()), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const BlockPart& part = parts[i];
      const int64_t block = part.block();
      for (int64_t position = part.first; position < part.last; ++position) {
        const int64_t token = part.row(position);
        for (int64_t head = 0; head < layer.kv_heads; ++head)
          store_token(k + token * ldk + head * dim, v + token * ldv + head * dim, dim,
                      position % kBlockTokens, layer.keys(block, head), layer.values(block, head));
      }
    }
  });
}

#define VALORA_INSTANTIATE(T)                                                              \
  template void store_token(const T*, const T*, int64_t, int64_t, T*, T*);                 \
  template void store_kv(const T*, int64_t, const T*, int64_t, std::span<const QuerySpan>, \
                         const KvLayer<T>&, const ParallelFor&);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)
#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
