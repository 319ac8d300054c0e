#include "kernels/cpu/paged_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/cpu/clones.h"
#include "kernels/cpu/vector_math.h"

namespace valora::kernels {
namespace {

// One (query token, kv head): its group of query heads against `keys` keys.
template <typename T>
struct HeadTask {
  const T* q;     // [group, dim]
  T* o;           // [group, dim]
  const int32_t* blocks;
  int64_t keys;
  int64_t group;
  int64_t dim;
  float scale;
  const T* k;  // the layer's K of this head, block 0
  int64_t block_stride, v_offset, block_tokens, row;
  float* scratch;  // 2 * group * dim + group * (block_tokens + 2)
};

template <typename T>
inline __attribute__((always_inline)) void attend(const HeadTask<T>& t) {
  const int64_t dim = t.dim, group = t.group;
  float* query = t.scratch;
  float* sum = query + group * dim;
  float* weight = sum + group * dim;  // [group, block_tokens]
  float* top = weight + group * t.block_tokens;
  float* total = top + group;
  for (int64_t i = 0; i < group * dim; ++i) query[i] = to_float(t.q[i]) * t.scale;
  for (int64_t i = 0; i < group * dim; ++i) sum[i] = 0;
  for (int64_t g = 0; g < group; ++g) top[g] = -std::numeric_limits<float>::infinity(), total[g] = 0;

  for (int64_t first = 0; first < t.keys; first += t.block_tokens) {
    const int64_t count = std::min(t.block_tokens, t.keys - first);
    const T* k = t.k + t.blocks[first / t.block_tokens] * t.block_stride;
    const T* v = k + t.v_offset;
    for (int64_t j = 0; j < count; ++j)
      for (int64_t g = 0; g < group; ++g)
        weight[g * t.block_tokens + j] = dot(query + g * dim, k + j * t.row, dim);
    for (int64_t g = 0; g < group; ++g) {
      float* w = weight + g * t.block_tokens;
      float* s = sum + g * dim;
      float block_top = top[g];
      for (int64_t j = 0; j < count; ++j) block_top = std::max(block_top, w[j]);
      const float fade = exp_approx(top[g] - block_top);
      top[g] = block_top;
      total[g] *= fade;
      for (int64_t i = 0; i < dim; ++i) s[i] *= fade;
      for (int64_t j = 0; j < count; ++j) {
        w[j] = exp_approx(w[j] - block_top);
        total[g] += w[j];
        const T* value = v + j * t.row;
        for (int64_t i = 0; i < dim; ++i) s[i] += w[j] * to_float(value[i]);
      }
    }
  }
  for (int64_t g = 0; g < group; ++g)
    for (int64_t i = 0; i < dim; ++i) t.o[g * dim + i] = from_float<T>(sum[g * dim + i] / total[g]);
}

VALORA_CLONES void attend_head(const HeadTask<float>& t) { attend(t); }
VALORA_CLONES void attend_head(const HeadTask<bf16>& t) { attend(t); }

struct Row {
  int32_t span;
  int32_t offset;
};

std::vector<Row> rows_of(std::span<const QuerySpan> spans) {
  std::vector<Row> rows;
  for (size_t s = 0; s < spans.size(); ++s)
    for (int64_t i = 0; i < spans[s].queries; ++i) rows.push_back({static_cast<int32_t>(s), static_cast<int32_t>(i)});
  return rows;
}

}  // namespace

template <typename T>
void store_kv(const T* k, const T* v, int64_t ldk, std::span<const QuerySpan> spans, const KvLayer<T>& layer,
              const ParallelFor& parallel) {
  const std::vector<Row> rows = rows_of(spans);
  const int64_t row = layer.kv_heads * layer.dim;
  parallel(0, static_cast<int64_t>(rows.size()), 64, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const QuerySpan& span = spans[rows[r].span];
      const int64_t position = span.context + rows[r].offset, token = span.begin + rows[r].offset;
      T* to = layer.data + span.blocks[position / layer.block_tokens] * layer.block_stride +
              position % layer.block_tokens * row;
      std::memcpy(to, k + token * ldk, row * sizeof(T));
      std::memcpy(to + layer.v_offset, v + token * ldk, row * sizeof(T));
    }
  });
}

template <typename T>
void paged_attention(const T* q, int64_t ldq, T* o, int64_t ldo, int64_t heads, float scale,
                     std::span<const QuerySpan> spans, const KvLayer<T>& layer, const ParallelFor& parallel) {
  const std::vector<Row> rows = rows_of(spans);
  const int64_t group = heads / layer.kv_heads, dim = layer.dim;
  parallel(0, static_cast<int64_t>(rows.size()) * layer.kv_heads, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(2 * group * dim + group * (layer.block_tokens + 2));
    for (int64_t i = begin; i < end; ++i) {
      const Row& row = rows[i / layer.kv_heads];
      const QuerySpan& span = spans[row.span];
      const int64_t token = span.begin + row.offset, head = i % layer.kv_heads;
      attend_head(HeadTask<T>{q + token * ldq + head * group * dim, o + token * ldo + head * group * dim, span.blocks,
                              span.context + row.offset + 1, group, dim, scale, layer.data + head * dim,
                              layer.block_stride, layer.v_offset, layer.block_tokens, layer.kv_heads * dim,
                              scratch.data()});
    }
  });
}

#define VALORA_INSTANTIATE(T)                                                                                    \
  template void store_kv(const T*, const T*, int64_t, std::span<const QuerySpan>, const KvLayer<T>&,             \
                         const ParallelFor&);                                                                    \
  template void paged_attention(const T*, int64_t, T*, int64_t, int64_t, float, std::span<const QuerySpan>,      \
                                const KvLayer<T>&, const ParallelFor&);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)

}  // namespace valora::kernels
