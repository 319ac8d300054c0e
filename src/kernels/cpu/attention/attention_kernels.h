// The loops of the attention kernels (attention/softmax_state.h), written over the Vectors of an
// instruction set. product/product_kernels.h describes Vectors.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cpu/attention/softmax_state.h"
#include "kernels/cpu/isa/lanes.h"
#include "kernels/cpu/product/product_kernels.h"

namespace valora::kernels {
namespace {

// Keeps ROWS × PANELS sums in registers while it runs through all blocks of keys.
template <typename V, int ROWS, int PANELS>
void value_tile(const ValueSum<typename V::Element>& s, int64_t row, int64_t panel) {
  using T = typename V::Element;
  constexpr int64_t kInputs = kVectorInputs<T>, kVector = kInputs * kPanelOutputs;
  const int64_t stride = panel_elements<T>(kPanelOutputs), width = panels_of(s.dim) * kPanelOutputs;
  const T* weights = s.weights + row * s.ldw;
  float* out = s.sums + row * width + panel * kPanelOutputs;
  typename V::Sums sums[ROWS][PANELS];
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < PANELS; ++j)
      sums[i][j] = V::load(out + i * width + j * kPanelOutputs, kPanelOutputs);

  const T* values[kMaxTilePanels];
  const bool fetches = s.fetch && row == 0;
  for (int64_t key = 0; key < s.keys; key += kPanelOutputs, weights += kPanelOutputs) {
    const T* block = s.blocks[key / kPanelOutputs] + panel * stride;
    if (fetches)
      for (int64_t i = 0; i < PANELS * stride; i += kVector)
        __builtin_prefetch(s.fetch[key / kPanelOutputs] + panel * stride + i, 0, 2);
    for (int j = 0; j < PANELS; ++j) values[j] = block + j * stride;
    const int64_t count = std::min(kPanelOutputs, s.keys - key), vectors = count / kInputs;
    for (int64_t v = 0; v < vectors; ++v)
      step<V>(sums, values, v * kVector, weights + v * kInputs, s.ldw);
    if constexpr (kInputs == 2)
      if (count % 2)
        multiply<V, 0>(sums, values, vectors * kVector,
                       [&](int i) { return V::last_value(weights + count - 1 + i * s.ldw); });
  }
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < PANELS; ++j)
      V::store(out + i * width + j * kPanelOutputs, kPanelOutputs, sums[i][j]);
}

template <typename V, int PANELS, size_t... R>
constexpr std::array<void (*)(const ValueSum<typename V::Element>&, int64_t, int64_t), sizeof...(R)>
value_tiles(std::index_sequence<R...>) {
  return {value_tile<V, static_cast<int>(R) + 1, PANELS>...};
}

template <typename V, int PANELS>
constexpr int value_rows() {
  return std::min(12, V::kTileSums / PANELS);
}

// Processes panels in groups of PANELS. Returns the first panel not processed.
template <typename V, int PANELS>
int64_t value_groups(const ValueSum<typename V::Element>& s, int64_t panel) {
  if constexpr (constexpr int kRows = value_rows<V, PANELS>(); kRows >= 1) {
    static constexpr auto kTiles = value_tiles<V, PANELS>(std::make_index_sequence<kRows>());
    const int64_t blocks = (s.rows + kRows - 1) / kRows;
    for (; panel + PANELS <= panels_of(s.dim); panel += PANELS)
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t row = s.rows * b / blocks;
        kTiles[s.rows * (b + 1) / blocks - row - 1](s, row, panel);
      }
  }
  return panel;
}

template <typename V>
void add_values(const ValueSum<typename V::Element>& s) {
  if (s.rows <= 0) return;
  // If all rows fit into one tile of two panels but not of four, two-panel tiles read the values
  // only once.
  const bool narrow = s.rows > value_rows<V, 4>() && s.rows <= value_rows<V, 2>();
  int64_t panel = narrow ? 0 : value_groups<V, 4>(s, 0);
  panel = value_groups<V, 2>(s, panel);
  value_groups<V, 1>(s, panel);
}

template <typename V>
void update_softmax(SoftmaxState<typename V::Element>& state) {
  using T = typename V::Element;
  constexpr bool kExact = sizeof(T) == 4;
  constexpr int64_t kLanes = kPanelOutputs;
  const int64_t whole = state.keys / kLanes * kLanes, rest = state.keys - whole,
                width = state.width;
  const float* const scores = state.scores;
  // A local copy, because the stores below may alias `state`, which would make the compiler reload
  // the pointer.
  T* const weights = state.weights;
  const LaneBits index = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const LaneBits counts = index < static_cast<int32_t>(rest);
  const Lanes nothing = Lanes{} - __builtin_inff();
  int64_t i = 0;
  if (state.keys > 0) {
    Lanes best = nothing;
    const auto track_max = [&](Lanes found)
                               __attribute__((always_inline)) { best = larger(found, best); };
    for (; i < whole; i += kLanes) track_max(load_lanes(scores + i));
    if (rest > 0) track_max(counts ? load_lanes(scores + i) : nothing);
    const float before = state.row_max, found = max_lane(best) * state.scale;
    state.row_max = found > before ? found : before;
    state.rescale = exp_lanes(Lanes{} + (before - state.row_max))[0];
    const float unit = kExact ? 1 : kLog2E;
    const Lanes scale = Lanes{} + state.scale * unit, row_max = Lanes{} + state.row_max * unit;
    typename V::Sums total = V::zero();
    const auto weight = [&](Lanes score) __attribute__((always_inline)) {
      const Lanes x = score * scale - row_max;
      return kExact ? exp_lanes(x) : exp2_lanes(x);
    };
    const auto put = [&](Lanes values) __attribute__((always_inline)) {
      V::store(weights + i, kLanes, __builtin_bit_cast(typename V::Sums, values));
      // Sums the rounded weights, so that normalised weights add up to one.
      total = V::add(total, V::load(weights + i, kLanes));
    };
    for (i = 0; i < whole; i += kLanes) put(weight(load_lanes(scores + i)));
    if (rest > 0) {
      put(counts ? weight(load_lanes(scores + i)) : Lanes{});
      i += kLanes;
    }
    state.row_sum = state.row_sum * state.rescale + sum_lanes(__builtin_bit_cast(Lanes, total));
  }
  for (; i < width; i += kLanes) V::store(weights + i, kLanes, V::zero());
}

}  // namespace
}  // namespace valora::kernels
