// The loops of the product kernel, written over the Vectors of an instruction set. They are in an
// unnamed namespace, and each file compiled for an instruction set instantiates its own copy
// (isa/instantiate.h), so that the linker never mixes code for different instruction sets.
//
// A Vectors type V provides
//   Element                 bf16 or float
//   kTileSums               number of Sums that fit into registers per tile
//   kSteps                  multiply-adds per vector of weights: 1, or 2 (even and odd inputs)
//   Sums                    16 outputs in fp32
//   zero(), add(a, b), scale(c, a), scale_add(c, a, b) = c · a + b
//   weights<STEP>(p)        the weights of 16 outputs in the vector at p
//   value<STEP>(x)          the inputs of one row for that vector, broadcast
//   last_value(x)           bf16: the last input of an odd k, paired with zero; reads one element
//   multiply_add(sums, value, weights)
//   load(p, count), store(p, count, sums)
//                           count <= 16 floats or Elements; accesses no memory beyond them
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/product/product.h"

namespace valora::kernels {
namespace {

inline constexpr int kMaxTilePanels = 8, kMaxTileRows = kMostTileRows;
// From this many rows, the hardware prefetcher misses the sums of kAddFloat.
inline constexpr int64_t kManyRows = 8;
// 16 and 64 are as fast on a Sapphire Rapids.
inline constexpr int64_t kVectorsAhead = 32;

// The position of a tile in a product.
template <typename T>
struct TilePlace {
  int64_t row;
  int64_t panel;
  const T* weights[kMaxTilePanels];
  // Panels to prefetch into L2 during this tile. next[0] is null: no prefetch.
  const T* next[kMaxTilePanels];
  bool near;  // into L1 instead, these panels' own vectors kVectorsAhead further on, then those
};

template <typename V, typename Y>
inline __attribute__((always_inline)) void store_sums(const Product<typename V::Element>& p, Y* y,
                                                      int64_t output, int64_t count,
                                                      typename V::Sums sums) {
  if (p.scale != 1) sums = V::scale(p.scale, sums);
  if (p.bias) sums = V::add(sums, V::load(p.bias + output, count));
  V::store(y, count, sums);
}

template <typename V>
inline __attribute__((always_inline)) void apply_epilogue(const Product<typename V::Element>& p,
                                                          int64_t row, int64_t panel,
                                                          typename V::Sums sums) {
  const int64_t output = panel * kPanelOutputs;
  const int64_t count = std::min(kPanelOutputs, p.w.n - output);
  const int64_t at = row * p.ldy + output - p.first_output;
  if (p.epilogue == Epilogue::kStore)
    return store_sums<V>(p, static_cast<typename V::Element*>(p.y) + at, output, count, sums);
  float* y = static_cast<float*>(p.y) + at;
  if (p.epilogue == Epilogue::kStoreFloat) return store_sums<V>(p, y, output, count, sums);
  V::store(y, count, V::scale_add(p.scale, sums, V::load(y, count)));
}

template <typename V, int STEP, int ROWS, int PANELS, typename T, typename Value>
inline __attribute__((always_inline)) void multiply(typename V::Sums (&sums)[ROWS][PANELS],
                                                    const T* const (&weights)[kMaxTilePanels],
                                                    int64_t offset, const Value& value) {
  typename V::Weights w[PANELS];
#pragma GCC unroll 8
  for (int j = 0; j < PANELS; ++j) w[j] = V::template weights<STEP>(weights[j] + offset);
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i) {
    const auto v = value(i);
#pragma GCC unroll 8
    for (int j = 0; j < PANELS; ++j) V::multiply_add(sums[i][j], v, w[j]);
  }
}

// Multiplies one vector of weights per panel, in all steps.
template <typename V, int ROWS, int PANELS, typename T>
inline __attribute__((always_inline)) void step(typename V::Sums (&sums)[ROWS][PANELS],
                                                const T* const (&weights)[kMaxTilePanels],
                                                int64_t offset, const T* inputs, int64_t ldx) {
  multiply<V, 0>(sums, weights, offset,
                 [&](int i) { return V::template value<0>(inputs + i * ldx); });
  if constexpr (V::kSteps == 2) {
    // Forces the compiler to reload for the second step, because too few registers are left to keep
    // the loads.
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    multiply<V, 1>(sums, weights, offset,
                   [&](int i) { return V::template value<1>(inputs + i * ldx); });
  }
}

// Prefetches the outputs to which the next tile adds; they may be in L2 or farther away.
template <int ROWS, int PANELS, typename T>
inline __attribute__((always_inline)) void fetch_next_sums(const Product<T>& p,
                                                           const TilePlace<T>& place) {
  const bool below = place.row + ROWS < p.m;
  const int64_t row = below ? place.row + ROWS : 0,
                panel = below ? place.panel : place.panel + PANELS;
  const float* y =
      static_cast<const float*>(p.y) + row * p.ldy + panel * kPanelOutputs - p.first_output;
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < PANELS; ++j) __builtin_prefetch(y + i * p.ldy + j * kPanelOutputs, 1);
}

// Keeps ROWS × PANELS × CHAINS sums in registers over all of k. Small batches are limited by
// reading cold weights, so the panels that follow are prefetched at the same time.
template <typename V, int ROWS, int PANELS, int CHAINS>
void tile(const Product<typename V::Element>& p, const TilePlace<typename V::Element>& place) {
  using T = typename V::Element;
  constexpr int64_t kInputs = kVectorInputs<T>, kVector = kInputs * kPanelOutputs;
  const int64_t vectors = p.w.k / kInputs, ldx = p.ldx;
  const T* inputs = p.x + place.row * ldx;
  typename V::Sums sums[CHAINS][ROWS][PANELS];
#pragma GCC unroll 8
  for (int c = 0; c < CHAINS; ++c)
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < PANELS; ++j) sums[c][i][j] = V::zero();

  if (p.epilogue == Epilogue::kAddFloat && p.m >= kManyRows)
    fetch_next_sums<ROWS, PANELS>(p, place);
  const T* weights[kMaxTilePanels];
  const T* fetched[kMaxTilePanels];
  for (int j = 0; j < PANELS; ++j) weights[j] = place.weights[j], fetched[j] = place.next[j];
  int64_t v = 0;
  // Fetches the vectors at `fetched` plus those multiplied; LOCALITY -1: none.
  const auto walk = [&]<int LOCALITY>(int64_t end) {
    for (; v + CHAINS <= end; v += CHAINS)
#pragma GCC unroll 8
      for (int c = 0; c < CHAINS; ++c) {
        const int64_t offset = (v + c) * kVector;
        if constexpr (LOCALITY >= 0)
#pragma GCC unroll 8
          for (int j = 0; j < PANELS; ++j) __builtin_prefetch(fetched[j] + offset, 0, LOCALITY);
        step<V>(sums[c], weights, offset, inputs + (v + c) * kInputs, ldx);
      }
  };
  if (place.near) {
    const int64_t last = std::max<int64_t>(0, vectors - kVectorsAhead);
    for (int j = 0; j < PANELS; ++j) fetched[j] = weights[j] + kVectorsAhead * kVector;
    walk.template operator()<3>(last);
    for (int j = 0; j < PANELS; ++j) fetched[j] = place.next[j] - v * kVector;
    walk.template operator()<3>(vectors);
  } else if (place.next[0]) {
    walk.template operator()<2>(vectors);
  } else {
    walk.template operator()<-1>(vectors);
  }
  for (; v < vectors; ++v) step<V>(sums[0], weights, v * kVector, inputs + v * kInputs, ldx);
  if constexpr (kInputs == 2)
    if (p.w.k % 2)  // reads only the last input: the next element may be out of bounds
      multiply<V, 0>(sums[0], weights, v * kVector,
                     [&](int i) { return V::last_value(inputs + v * kInputs + i * ldx); });

#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < PANELS; ++j) {
      typename V::Sums sum = sums[0][i][j];
#pragma GCC unroll 8
      for (int c = 1; c < CHAINS; ++c) sum = V::add(sum, sums[c][i][j]);
      apply_epilogue<V>(p, place.row + i, place.panel + j, sum);
    }
}

template <typename V>
using TileFunction = void (*)(const Product<typename V::Element>&,
                              const TilePlace<typename V::Element>&);

template <typename V, int PANELS, int CHAINS>
constexpr int max_rows() {
  return std::min(kMaxTileRows, V::kTileSums / (PANELS * CHAINS));
}

// tiles[r] has r + 1 rows.
template <typename V, int PANELS, int CHAINS, size_t... R>
constexpr std::array<TileFunction<V>, sizeof...(R)> tiles_of_rows(std::index_sequence<R...>) {
  return {tile<V, static_cast<int>(R) + 1, PANELS, CHAINS>...};
}

// Computes all rows, in blocks of nearly equal size, for panels in groups of PANELS. Returns the
// first panel not processed.
template <typename V, int PANELS, int CHAINS>
int64_t panel_groups(const Product<typename V::Element>& p, int64_t panel) {
  static constexpr auto kTiles =
      tiles_of_rows<V, PANELS, CHAINS>(std::make_index_sequence<max_rows<V, PANELS, CHAINS>()>());
  const int64_t rows = std::clamp<int64_t>(p.tile.rows, 1, kTiles.size());
  const int64_t blocks = (p.m + rows - 1) / rows, all = panels_of(p.w.n);
  const bool near = blocks == 1 && !p.fetch && fetches_near(p.m, V::kTileSums);
  TilePlace<typename V::Element> place;
  for (; panel + PANELS <= p.panel_end; panel += PANELS) {
    place.panel = panel;
    for (int j = 0; j < PANELS; ++j) place.weights[j] = p.w.panel(panel + j);
    const bool more = panel + 2 * PANELS <= all;
    for (int j = 0; j < PANELS; ++j)
      place.next[j] = p.fetch ? p.fetch[panel + j] : more ? p.w.panel(panel + PANELS + j) : nullptr;
    place.near = near && place.next[0];
    for (int64_t b = 0; b < blocks; ++b) {
      place.row = p.m * b / blocks;
      kTiles[p.m * (b + 1) / blocks - place.row - 1](p, place);
      place.next[0] = nullptr;
    }
  }
  return panel;
}

// Uses the largest number of chains (a power of two up to 8) that tile.chains allows and that
// leaves registers for at least one row.
template <typename V, int PANELS, int CHAINS = 8>
int64_t panel_groups_in_chains(const Product<typename V::Element>& p, int64_t panel) {
  if constexpr (CHAINS > 1 && max_rows<V, PANELS, CHAINS>() < 1)
    return panel_groups_in_chains<V, PANELS, CHAINS / 2>(p, panel);
  else if constexpr (CHAINS == 1)
    return panel_groups<V, PANELS, 1>(p, panel);
  else if (p.tile.chains >= CHAINS)
    return panel_groups<V, PANELS, CHAINS>(p, panel);
  else
    return panel_groups_in_chains<V, PANELS, CHAINS / 2>(p, panel);
}

// Processes groups of PANELS if the tile is at least that wide.
template <typename V, int PANELS>
int64_t panel_groups_up_to(const Product<typename V::Element>& p, int64_t panel) {
  if constexpr (max_rows<V, PANELS, 1>() >= 1)
    if (p.tile.panels >= PANELS) return panel_groups_in_chains<V, PANELS>(p, panel);
  return panel;
}

template <typename V>
void multiply_product(const Product<typename V::Element>& p) {
  if (p.m <= 0) return;
  int64_t panel = p.panel_begin;
  panel = panel_groups_up_to<V, 8>(p, panel);
  panel = panel_groups_up_to<V, 4>(p, panel);
  panel = panel_groups_up_to<V, 2>(p, panel);
  panel_groups_in_chains<V, 1>(p, panel);
}

}  // namespace
}  // namespace valora::kernels
