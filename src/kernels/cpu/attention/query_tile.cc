#include "kernels/cpu/attention/query_tile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/attention/kv_layout.h"
#include "kernels/cpu/attention/softmax_state.h"
#include "kernels/cpu/isa/clones.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/product/product.h"
#include "kernels/tiles/choose.h"

namespace valora::kernels {
namespace {

// Keys per chunk of the online softmax. The chunk's scores stay in L1; for many rows, in L2.
constexpr int64_t kFewRows = 16;
constexpr int64_t chunk_keys(int64_t rows) { return rows <= kFewRows ? 256 : 128; }
static_assert(kAheadBlocks * kPanelOutputs >= chunk_keys(1));

// For few rows, uses the fewest panels whose independent sums hide the FMA latency, so that keys
// are read once and in memory order.
CpuTile score_tile(const ProductShape& shape) {
  constexpr int64_t kRows = 12, kSums = 6;
  if (shape.m > kRows) return choose_cpu_tile(shape);
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

// Scratch memory of one thread, used between the two products.
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
void attend(const QueryTile<T>& tile, const KeyBlocks<T>& blocks, const PartialAttention& partial) {
  const int64_t rows = tile.rows(), dim = tile.dim, width = tile.width();
  Workspace<T>& memory = Workspace<T>::of(rows, dim);
  for (int64_t t = 0; t < tile.tokens; ++t)
    std::copy_n(tile.q + t * tile.ldq, tile.group * dim, &memory.q[t * tile.group * dim]);
  std::fill_n(partial.sums, rows * width, 0.f);
  std::fill_n(partial.row_max, rows, -std::numeric_limits<float>::infinity());
  std::fill_n(partial.row_sum, rows, 0.f);
  const KernelSet<T>& kernels = kernel_set<T>();
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
    score.epilogue = Epilogue::kStoreFloat;
    score.y = memory.scores.data();
    score.ldy = chunk;
    score.fetch = blocks.values.data() + block;
    score.tile = score_tile({ProductKind::kExpand, sizeof(T) == 4, isa(), rows, keys, dim});
    kernels.multiply(score);
    for (int64_t r = 0; r < rows; ++r) {
      float* const scores = &memory.scores[r * chunk];
      T* const weights = &memory.weights[r * chunk];
      // The row attends to keys [hidden, seen) of this chunk. Whole panels before `hidden` are
      // skipped; other keys before it get a score of -infinity, and their weights are then set to
      // zero.
      const PositionRange visible = tile.visible_to(r);
      const int64_t seen = std::clamp<int64_t>(visible.end - first, 0, keys),
                    hidden = std::clamp<int64_t>(visible.begin - first, 0, seen),
                    skipped = hidden / kPanelOutputs * kPanelOutputs;
      std::fill(scores + skipped, scores + hidden, -std::numeric_limits<float>::infinity());
      SoftmaxState<T> state{scores + skipped,
                            hidden < seen ? seen - skipped : 0,
                            keys - skipped,
                            tile.scale,
                            partial.row_max[r],
                            partial.row_sum[r],
                            1,
                            weights + skipped};
      kernels.update_softmax(state);
      std::fill(weights, weights + hidden, T{});
      partial.row_max[r] = state.row_max;
      partial.row_sum[r] = state.row_sum;
      if (state.rescale != 1 && first > tile.key_begin)
        scale_row(partial.sums + r * width, width, state.rescale);
    }
    kernels.add_values({memory.weights.data(), rows, chunk, keys, blocks.values.data() + block,
                        blocks.keys.data() + block + panels_of(keys), dim, partial.sums});
  }
}

template <typename T>
void add_partial(const QueryTile<T>& tile, const PartialAttention& other,
                 const PartialAttention& partial) {
  const int64_t width = tile.width();
  for (int64_t r = 0; r < tile.rows(); ++r) {
    const float row_max = std::max(partial.row_max[r], other.row_max[r]);
    if (row_max == -std::numeric_limits<float>::infinity()) continue;
    const auto share = [&](float of) { return of == row_max ? 1 : std::exp(of - row_max); };
    const float mine = share(partial.row_max[r]), theirs = share(other.row_max[r]);
    add_scaled(partial.sums + r * width, other.sums + r * width, width, mine, theirs);
    partial.row_sum[r] = partial.row_sum[r] * mine + other.row_sum[r] * theirs;
    partial.row_max[r] = row_max;
  }
}

template <typename T>
void write_normalized(const QueryTile<T>& tile, const PartialAttention& partial, T* o,
                      int64_t ldo) {
  for (int64_t t = 0; t < tile.tokens; ++t)
    for (int64_t g = 0; g < tile.group; ++g) {
      const int64_t row = t * tile.group + g;
      divide_row(partial.sums + row * tile.width(), tile.dim, partial.row_sum[row],
                 o + t * ldo + g * tile.dim);
    }
}

#define VALORA_INSTANTIATE(T)                                                              \
  template void attend(const QueryTile<T>&, const KeyBlocks<T>&, const PartialAttention&); \
  template void add_partial(const QueryTile<T>&, const PartialAttention&,                  \
                            const PartialAttention&);                                      \
  template void write_normalized(const QueryTile<T>&, const PartialAttention&, T*, int64_t);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)

#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
