#include "kernels/cpu/attention_tile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/clones.h"
#include "kernels/cpu/kv_layout.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/tiles/choose.h"

namespace valora::kernels {
namespace {

constexpr int64_t kChunkKeys = 128;  // scored, weighted and summed before the next ones are looked at

// Keys [0, n) of a row's scores into weights relative to the row's top so far, in the values' type; those of
// [n, width) get none. Returns what earlier sums fade by.
template <typename T>
inline __attribute__((always_inline)) float weigh(const float* __restrict scores, int64_t n, int64_t width, float scale,
                                                  float& top, float& total, T* __restrict weights) {
  for (int64_t i = n; i < width; ++i) weights[i] = T{};
  if (n == 0) return 1;
  const float before = top, now = std::max(before, largest(scores, n) * scale);
  for (int64_t i = 0; i < n; ++i) weights[i] = from_float<T>(exp_approx(scores[i] * scale - now));
  const float fade = exp_approx(before - now);
  top = now;
  total = total * fade + sum(weights, n);  // of the rounded weights: they then add up to one
  return fade;
}

VALORA_CLONES float weigh_row(const float* s, int64_t n, int64_t w, float c, float& top, float& total, float* p) { return weigh(s, n, w, c, top, total, p); }
VALORA_CLONES float weigh_row(const float* s, int64_t n, int64_t w, float c, float& top, float& total, bf16* p) { return weigh(s, n, w, c, top, total, p); }

VALORA_CLONES void scale_row(float* x, int64_t n, float by) {
  for (int64_t i = 0; i < n; ++i) x[i] *= by;
}
VALORA_CLONES void add_scaled(float* x, const float* y, int64_t n, float by_x, float by_y) {
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] * by_x + y[i] * by_y;
}

template <typename T>
inline __attribute__((always_inline)) void divide(const float* sums, int64_t n, float by, T* o) {
  for (int64_t i = 0; i < n; ++i) o[i] = from_float<T>(sums[i] / by);
}
VALORA_CLONES void divide_row(const float* sums, int64_t n, float by, float* o) { divide(sums, n, by, o); }
VALORA_CLONES void divide_row(const float* sums, int64_t n, float by, bf16* o) { divide(sums, n, by, o); }

// One thread's memory between the two products.
template <typename T>
struct Workspace {
  std::vector<T> q, weights;
  std::vector<float> scores;

  static Workspace& of(int64_t rows, int64_t dim) {
    thread_local Workspace memory;
    memory.q.resize(std::max<size_t>(memory.q.size(), rows * dim));
    memory.weights.resize(std::max<size_t>(memory.weights.size(), rows * kChunkKeys));
    memory.scores.resize(std::max<size_t>(memory.scores.size(), rows * kChunkKeys));
    return memory;
  }
};

// The panels that the next chunk reads, into the second-level cache.
template <typename T>
void fetch(const std::vector<const T*>& blocks, int64_t first, int64_t count, int64_t elements) {
  const int64_t last = std::min<int64_t>(first + count, static_cast<int64_t>(blocks.size()));
  for (int64_t b = first; b < last; ++b)
    for (int64_t i = 0; i < elements; i += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(blocks[b] + i, 0, 2);
}

}  // namespace

template <typename T>
void attend(const QueryTile<T>& tile, const KeyBlocks<T>& blocks, const Gathered& gathered) {
  const int64_t rows = tile.rows(), dim = tile.dim, width = tile.width();
  Workspace<T>& memory = Workspace<T>::of(rows, dim);
  for (int64_t t = 0; t < tile.tokens; ++t) std::copy_n(tile.q + t * tile.ldq, tile.group * dim, &memory.q[t * tile.group * dim]);
  std::fill_n(gathered.sums, rows * width, 0.f);
  std::fill_n(gathered.top, rows, -std::numeric_limits<float>::infinity());
  std::fill_n(gathered.total, rows, 0.f);
  const auto& products = product_bodies<T>();
  const auto& bodies = attention_bodies<T>();
  constexpr int64_t kChunkBlocks = kChunkKeys / kPanelOutputs;

  for (int64_t first = tile.key_begin; first < tile.key_end; first += kChunkKeys) {
    const int64_t keys = std::min(kChunkKeys, tile.key_end - first), block = (first - tile.key_begin) / kPanelOutputs;
    fetch(blocks.values, block, kChunkBlocks, value_elements<T>(dim));
    Product<T> score;
    score.x = memory.q.data();
    score.m = rows;
    score.ldx = dim;
    score.w = {nullptr, keys, dim, blocks.keys.data() + block, 1};
    score.panel_end = panels_of(keys);
    score.finish = Finish::kStoreFloat;
    score.y = memory.scores.data();
    score.ldy = kChunkKeys;
    score.tile = choose_tile({ProductKind::kExpand, sizeof(T) == 4, isa(), rows, keys, dim});
    products.multiply(score);
    fetch(blocks.keys, block + kChunkBlocks, kChunkBlocks, key_elements<T>(dim));
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t seen = std::clamp<int64_t>(tile.visible_to(r) - first, 0, keys);
      const float fade = weigh_row(&memory.scores[r * kChunkKeys], seen, keys, tile.scale, gathered.top[r], gathered.total[r],
                                   &memory.weights[r * kChunkKeys]);
      if (fade != 1 && first > tile.key_begin) scale_row(gathered.sums + r * width, width, fade);
    }
    bodies.add_values({memory.weights.data(), rows, kChunkKeys, keys, blocks.values.data() + block, dim, gathered.sums});
  }
}

template <typename T>
void take_in(const QueryTile<T>& tile, const Gathered& other, const Gathered& gathered) {
  const int64_t width = tile.width();
  for (int64_t r = 0; r < tile.rows(); ++r) {
    const float top = std::max(gathered.top[r], other.top[r]);
    if (top == -std::numeric_limits<float>::infinity()) continue;
    const float mine = std::exp(gathered.top[r] - top), theirs = std::exp(other.top[r] - top);
    add_scaled(gathered.sums + r * width, other.sums + r * width, width, mine, theirs);
    gathered.total[r] = gathered.total[r] * mine + other.total[r] * theirs;
    gathered.top[r] = top;
  }
}

template <typename T>
void write_out(const QueryTile<T>& tile, const Gathered& gathered, T* o, int64_t ldo) {
  for (int64_t t = 0; t < tile.tokens; ++t)
    for (int64_t g = 0; g < tile.group; ++g) {
      const int64_t row = t * tile.group + g;
      divide_row(gathered.sums + row * tile.width(), tile.dim, gathered.total[row], o + t * ldo + g * tile.dim);
    }
}

#define VALORA_INSTANTIATE(T)                                                                     \
  template void attend(const QueryTile<T>&, const KeyBlocks<T>&, const Gathered&);                \
  template void take_in(const QueryTile<T>&, const Gathered&, const Gathered&);                   \
  template void write_out(const QueryTile<T>&, const Gathered&, T*, int64_t);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)

template <>
const AttentionBodies<bf16>& attention_bodies() {
  switch (isa()) {
#ifdef __x86_64__
    case Isa::kAvx512Bf16: return kAvx512Bf16Attention;
    case Isa::kAvx512: return kAvx512Attention;
    case Isa::kAvx2: return kAvx2Attention;
#endif
    default: return kPortableAttention;
  }
}

template <>
const AttentionBodies<float>& attention_bodies() {
  switch (isa()) {
#ifdef __x86_64__
    case Isa::kAvx512Bf16:
    case Isa::kAvx512: return kAvx512FloatAttention;
    case Isa::kAvx2: return kAvx2FloatAttention;
#endif
    default: return kPortableFloatAttention;
  }
}

}  // namespace valora::kernels
