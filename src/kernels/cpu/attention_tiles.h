// The loops of attention_bodies.h around an instruction set's vectors, for the body files alone (product_tiles.h).
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cpu/attention_bodies.h"
#include "kernels/cpu/product_tiles.h"

namespace valora::kernels {
namespace {

// ROWS × PANELS sums stay in registers over all blocks of keys.
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
    for (int j = 0; j < PANELS; ++j) sums[i][j] = V::load(out + i * width + j * kPanelOutputs, kPanelOutputs);

  const T* values[kMaxTilePanels];
  for (int64_t key = 0; key < s.keys; key += kPanelOutputs, weights += kPanelOutputs) {
    const T* block = s.blocks[key / kPanelOutputs] + panel * stride;
    for (int j = 0; j < PANELS; ++j) values[j] = block + j * stride;
    const int64_t count = std::min(kPanelOutputs, s.keys - key), vectors = count / kInputs;
    for (int64_t v = 0; v < vectors; ++v) step<V>(sums, values, v * kVector, weights + v * kInputs, s.ldw);
    if constexpr (kInputs == 2)
      if (count % 2)
        multiply<V, 0>(sums, values, vectors * kVector, [&](int i) { return V::last_value(weights + count - 1 + i * s.ldw); });
  }
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < PANELS; ++j) V::store(out + i * width + j * kPanelOutputs, kPanelOutputs, sums[i][j]);
}

template <typename V, int PANELS, size_t... R>
constexpr std::array<void (*)(const ValueSum<typename V::Element>&, int64_t, int64_t), sizeof...(R)> value_tiles(
    std::index_sequence<R...>) {
  return {value_tile<V, static_cast<int>(R) + 1, PANELS>...};
}

// Panels in groups of PANELS; returns the first one left over.
template <typename V, int PANELS>
int64_t value_groups(const ValueSum<typename V::Element>& s, int64_t panel) {
  if constexpr (constexpr int kRows = std::min(8, V::kTileSums / PANELS); kRows >= 1) {
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
  int64_t panel = value_groups<V, 4>(s, 0);
  panel = value_groups<V, 2>(s, panel);
  value_groups<V, 1>(s, panel);
}

}  // namespace
}  // namespace valora::kernels
