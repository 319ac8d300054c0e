// The loops of attention_bodies.h around an instruction set's vectors, for the body files alone
// (product_tiles.h).
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

// Panels in groups of PANELS; returns the first one left over.
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
  // Values are read once where all rows fit into one tile.
  const bool narrow = s.rows > value_rows<V, 4>() && s.rows <= value_rows<V, 2>();
  int64_t panel = narrow ? 0 : value_groups<V, 4>(s, 0);
  panel = value_groups<V, 2>(s, panel);
  value_groups<V, 1>(s, panel);
}

// 16 floats in the compiler's own vectors: every instruction set takes them as wide as it can.
using Lanes = float __attribute__((vector_size(64)));
using LaneBits = int32_t __attribute__((vector_size(64)));

inline __attribute__((always_inline)) Lanes load_lanes(const float* p) {
  Lanes lanes;
  __builtin_memcpy(&lanes, p, sizeof lanes);
  return lanes;
}

constexpr float kLog2E = 1.44269504088896341f;
constexpr float kRound =
    12582912.0f;  // adding 1.5 · 2^23 rounds to whole numbers, which are then in the low bits

// e^x within 2 ulp for x <= 0, below e^-87 that. 2^n by the exponent's bits, e^r by a polynomial on
// |r| <= ln2 / 2.
inline __attribute__((always_inline)) Lanes exp_lanes(Lanes x) {
  x = x < -87.0f ? Lanes{} - 87.0f : x;
  const Lanes n = (x * kLog2E + kRound) - kRound;
  const Lanes r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Lanes p = r * 1.3888889e-3f + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return (Lanes)((LaneBits)p + (__builtin_convertvector(n, LaneBits) << 23));
}

// 2^x within 2^-18 for x < 127, below 2^-126 that: for what is rounded to bf16 anyway. 2^r by the
// polynomial whose largest relative error on |r| <= 1/2 is least.
inline __attribute__((always_inline)) Lanes exp2_lanes(Lanes x) {
  constexpr float kLeast = -126.0f;
  x = x < kLeast ? Lanes{} + kLeast : x;
  const Lanes moved = x + kRound, r = x - (moved - kRound);
  Lanes p = r * 9.5701003e-3f + 5.5917867e-2f;
  p = p * r + 2.4024744e-1f;
  p = p * r + 6.9312179e-1f;
  p = p * r + 9.9999928e-1f;
  return (Lanes)((LaneBits)p + ((LaneBits)moved << 23));
}

// The lanes `by` further on, around.
template <int BY>
inline __attribute__((always_inline)) Lanes turned(Lanes lanes) {
  const LaneBits index = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return __builtin_shuffle(lanes, (index + BY) & 15);
}

// In halves: four steps deep.
template <typename Join>
inline __attribute__((always_inline)) float joined(Lanes lanes, const Join& join) {
  lanes = join(lanes, turned<8>(lanes));
  lanes = join(lanes, turned<4>(lanes));
  lanes = join(lanes, turned<2>(lanes));
  return join(lanes, turned<1>(lanes))[0];
}
inline __attribute__((always_inline)) float largest_lane(Lanes lanes) {
  return joined(lanes,
                [](Lanes a, Lanes b) __attribute__((always_inline)) { return a > b ? a : b; });
}
inline __attribute__((always_inline)) float sum_of_lanes(Lanes lanes) {
  return joined(lanes, [](Lanes a, Lanes b) __attribute__((always_inline)) { return a + b; });
}

template <typename V>
void weigh(Weighing<typename V::Element>& row) {
  using T = typename V::Element;
  constexpr bool kExact = sizeof(T) == 4;
  constexpr int64_t kLanes = kPanelOutputs;
  const int64_t whole = row.keys / kLanes * kLanes, rest = row.keys - whole, width = row.width;
  const float* const scores = row.scores;
  T* const weights = row.weights;  // the compiler would read row again after each of them
  const LaneBits index = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const LaneBits counts = index < static_cast<int32_t>(rest);
  const Lanes nothing = Lanes{} - __builtin_inff();
  int64_t i = 0;
  if (row.keys > 0) {
    Lanes best = nothing;
    const auto meet = [&](Lanes found)
                          __attribute__((always_inline)) { best = found > best ? found : best; };
    for (; i < whole; i += kLanes) meet(load_lanes(scores + i));
    if (rest > 0) meet(counts ? load_lanes(scores + i) : nothing);
    const float before = row.top, found = largest_lane(best) * row.scale;
    row.top = found > before ? found : before;
    row.fade = exp_lanes(Lanes{} + (before - row.top))[0];
    const float unit = kExact ? 1 : kLog2E;
    const Lanes scale = Lanes{} + row.scale * unit, top = Lanes{} + row.top * unit;
    typename V::Sums total = V::zero();
    const auto weight = [&](Lanes score) __attribute__((always_inline)) {
      const Lanes x = score * scale - top;
      return kExact ? exp_lanes(x) : exp2_lanes(x);
    };
    const auto put = [&](Lanes values) __attribute__((always_inline)) {
      V::store(weights + i, kLanes, __builtin_bit_cast(typename V::Sums, values));
      total = V::add(total,
                     V::load(weights + i, kLanes));  // of the rounded ones: they then add up to one
    };
    for (i = 0; i < whole; i += kLanes) put(weight(load_lanes(scores + i)));
    if (rest > 0) {
      put(counts ? weight(load_lanes(scores + i)) : Lanes{});
      i += kLanes;
    }
    row.total = row.total * row.fade + sum_of_lanes(__builtin_bit_cast(Lanes, total));
  }
  for (; i < width; i += kLanes) V::store(weights + i, kLanes, V::zero());
}

}  // namespace
}  // namespace valora::kernels
