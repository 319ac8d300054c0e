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

// Keys that are scored, weighted and summed before the next ones are looked at: as many as keep the
// rows' scores in the first-level cache, or of many rows in the second.
constexpr int64_t kFewRows = 16;
constexpr int64_t chunk_keys(int64_t rows) { return rows <= kFewRows ? 256 : 128; }
static_assert(kAheadBlocks * kPanelOutputs >= chunk_keys(1));

// Few rows take as few panels at once as give them sums enough to hide a product's latency: memory
// is then read in order, and once.
Tile score_tile(const ProductShape& shape) {
  constexpr int64_t kRows = 12, kSums = 6;
  if (shape.m > kRows) return choose_tile(shape);
  uint8_t panels = 2;
  while (panels < 8 && panels * shape.m < kSums) panels *= 2;
  return {static_cast<uint8_t>(kRows), panels, 1};
}

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
VALORA_CLONES void divide_row(const float* sums, int64_t n, float by, float* o) {
  divide(sums, n, by, o);
}
VALORA_CLONES void divide_row(const float* sums, int64_t n, float by, bf16* o) {
  divide(sums, n, by, o);
}

// One thread's memory between the two products.
template <typename T>
struct Workspace {
  std::vector<T> q, weights;
  std::vector<float> scores;

  static Workspace& of(int64_t rows, int64_t dim) {
    thread_local Workspace memory;
    memory.q.resize(std::max<size_t>(memory.q.size(), rows * dim));
    memory.weights.resize(std::max<size_t>(memory.weights.size(), rows * chunk_keys(rows)));
    memory.scores.resize(std::max<size_t>(memory.scores.size(), rows * chunk_keys(rows)));
    return memory;
  }
};

}  // namespace

template <typename T>
void attend(const QueryTile<T>& tile, const KeyBlocks<T>& blocks, const Gathered& gathered) {
  const int64_t rows = tile.rows(), dim = tile.dim, width = tile.width();
  Workspace<T>& memory = Workspace<T>::of(rows, dim);
  for (int64_t t = 0; t < tile.tokens; ++t)
    std::copy_n(tile.q + t * tile.ldq, tile.group * dim, &memory.q[t * tile.group * dim]);
  std::fill_n(gathered.sums, rows * width, 0.f);
  std::fill_n(gathered.top, rows, -std::numeric_limits<float>::infinity());
  std::fill_n(gathered.total, rows, 0.f);
  const auto& products = product_bodies<T>();
  const auto& bodies = attention_bodies<T>();
  const int64_t chunk = chunk_keys(rows);

  for (int64_t first = tile.key_begin; first < tile.key_end; first += chunk) {
    const int64_t keys = std::min(chunk, tile.key_end - first),
                  block = (first - tile.key_begin) / kPanelOutputs;
    Product<T> score;
    score.x = memory.q.data();
    score.m = rows;
    score.ldx = dim;
    score.w = {nullptr, keys, dim, blocks.keys.data() + block, 1};
    score.panel_end = panels_of(keys);
    score.finish = Finish::kStoreFloat;
    score.y = memory.scores.data();
    score.ldy = chunk;
    score.fetch = blocks.values.data() + block;
    score.tile = score_tile({ProductKind::kExpand, sizeof(T) == 4, isa(), rows, keys, dim});
    products.multiply(score);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t seen = std::clamp<int64_t>(tile.visible_to(r) - first, 0, keys);
      Weighing<T> row{
          &memory.scores[r * chunk], seen, keys, tile.scale, gathered.top[r], gathered.total[r], 1,
          &memory.weights[r * chunk]};
      bodies.weigh(row);
      gathered.top[r] = row.top;
      gathered.total[r] = row.total;
      if (row.fade != 1 && first > tile.key_begin)
        scale_row(gathered.sums + r * width, width, row.fade);
    }
    bodies.add_values({memory.weights.data(), rows, chunk, keys, blocks.values.data() + block,
                       blocks.keys.data() + block + panels_of(keys), dim, gathered.sums});
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
      divide_row(gathered.sums + row * tile.width(), tile.dim, gathered.total[row],
                 o + t * ldo + g * tile.dim);
    }
}

#define VALORA_INSTANTIATE(T)                                                      \
  template void attend(const QueryTile<T>&, const KeyBlocks<T>&, const Gathered&); \
  template void take_in(const QueryTile<T>&, const Gathered&, const Gathered&);    \
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
