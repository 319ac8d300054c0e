// The loops of the products with weights in integers, written over the Vectors of
// product_kernels.h, which here also need:
//
//   kIntegerInputs          inputs per multiply_add: 2 with pairs of bf16, else 1
//   nibbles<I>(chunk), bytes<I>(chunk)
//                           the integers of 16 outputs for the I-th multiply_add of a chunk
//   kNibbleOffset           nibbles() gives value + kNibbleOffset; bytes() gives value - 128
//   store_weights(p, weights)
//                           writes what weights<0>(p) reads
//   broadcast(c), add_product(sums, a, b)
//                           16 times c; sums += a · b
//   decoded_weight(w, zeros, scales, minimums)
//                           float: (w - zeros) · scales + minimums
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/cpu/product/integer_product.h"

namespace valora::kernels {
namespace {

// Where a tile reads the integers: 4 or 8 bits in panels, or decoded.
template <typename V>
struct NibbleSource {
  static constexpr int64_t kChunkBytes = 64;
  static constexpr bool kPacked = true;
  template <int I>
  static inline __attribute__((always_inline)) typename V::Weights weights(const uint8_t* chunk) {
    return V::template nibbles<I>(chunk);
  }
};
template <typename V>
struct ByteSource {
  static constexpr int64_t kChunkBytes = 128;
  static constexpr bool kPacked = true;
  template <int I>
  static inline __attribute__((always_inline)) typename V::Weights weights(const uint8_t* chunk) {
    return V::template bytes<I>(reinterpret_cast<const int8_t*>(chunk));
  }
};
template <typename V>
struct DecodedSource {
  using T = typename V::Element;
  static constexpr int64_t kChunkBytes = kChunkInputs * kPanelOutputs * sizeof(T);
  static constexpr bool kPacked = false;
  template <int I>
  static inline __attribute__((always_inline)) typename V::Weights weights(const uint8_t* chunk) {
    return V::template weights<0>(reinterpret_cast<const T*>(chunk) +
                                  I * V::kIntegerInputs * kPanelOutputs);
  }
};

inline constexpr int kMostIntegerRows = 12;
// With more rows integers are decoded once for all of them.
template <typename V>
inline constexpr int64_t kRegisterRows =
    V::kTileSums >= 24 ? 2 * kMostIntegerRows : 2 * V::kTileSums;
// Decoded weights of float have their scale, so that the product of floats takes them; those of
// bf16 are the integers, which it has exactly.
template <typename V>
inline constexpr bool kDecodesScaled = sizeof(typename V::Element) == sizeof(float);

struct IntegerPlace {
  int64_t row, panel;
  // Of chunk 0 of each panel, even if the product begins at a later one.
  const uint8_t* chunks[kIntegerPanels];
  const uint8_t* next[kIntegerPanels];  // panels to prefetch into L2; next[0] is null: none
};

template <typename V, typename S, int CHAINS, int ROWS, int PANELS, int... I>
inline __attribute__((always_inline)) void multiply_chunk(
    typename V::Sums (&sums)[CHAINS][ROWS][PANELS], const uint8_t* const* chunks, int64_t offset,
    const typename V::Element* x, int64_t ldx, std::integer_sequence<int, I...>) {
  const auto step =
      [&]<int STEP>(std::integral_constant<int, STEP>) __attribute__((always_inline)) {
        typename V::Weights w[PANELS];
#pragma GCC unroll 4
        for (int j = 0; j < PANELS; ++j) w[j] = S::template weights<STEP>(chunks[j] + offset);
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; ++i) {
          const auto value = V::template value<0>(x + i * ldx + STEP * V::kIntegerInputs);
#pragma GCC unroll 4
          for (int j = 0; j < PANELS; ++j) V::multiply_add(sums[STEP % CHAINS][i][j], value, w[j]);
        }
      };
  (step(std::integral_constant<int, I>()), ...);
}

template <typename V>
inline __attribute__((always_inline)) typename V::Sums group_scales(const IntegerOutputs& p,
                                                                    int64_t panel, int64_t group) {
  const uint8_t* scales = p.w.data + panel * p.w.panel_bytes + p.w.scales_at;
  const int64_t at = group * kPanelOutputs;
  return p.w.float_scales ? V::load(reinterpret_cast<const float*>(scales) + at, kPanelOutputs)
                          : V::load(reinterpret_cast<const bf16*>(scales) + at, kPanelOutputs);
}

// The zero-points of a group, relative to what the kernel decodes.
template <typename V>
inline __attribute__((always_inline)) typename V::Sums group_zeros(const IntegerOutputs& p,
                                                                   int64_t panel, int64_t group,
                                                                   int offset) {
  const uint8_t* zeros = p.w.data + panel * p.w.panel_bytes + p.w.zeros_at + group * kPanelOutputs;
  float wide[kPanelOutputs];
  for (int64_t j = 0; j < kPanelOutputs; ++j)
    wide[j] = static_cast<float>(static_cast<int>(zeros[j]) + offset);
  return V::load(wide, kPanelOutputs);
}

template <typename V>
inline __attribute__((always_inline)) typename V::Sums group_minimums(const IntegerOutputs& p,
                                                                      int64_t panel,
                                                                      int64_t group) {
  const uint8_t* minimums = p.w.data + panel * p.w.panel_bytes + p.w.zeros_at;
  return V::load(reinterpret_cast<const float*>(minimums) + group * kPanelOutputs, kPanelOutputs);
}

// The integer from which weights are counted if no zero-points are stored.
inline int usual_zero(const IntegerPanels& w) { return w.minimums ? 0 : 1 << (w.bits - 1); }

// What kernels decode is the integer plus this.
template <typename V>
int integer_offset(const IntegerProduct& p) {
  return p.w.bits == 4 ? V::kNibbleOffset : -128;
}

// A channel's group has no end before that of the inputs.
inline int64_t group_chunks_of(const IntegerOutputs& p) {
  return p.w.group < p.w.k ? p.w.group / kChunkInputs : p.w.k / kChunkInputs + 1;
}

// totals += scale · (sums - zero · the sum of the inputs) + minimum · the sum of the inputs.
// complete: the group ends here, so the terms of the sum of the inputs are due.
template <typename V, int ROWS, int PANELS>
inline __attribute__((always_inline)) void add_group(const IntegerProduct& p,
                                                     const IntegerPlace& place, int64_t group,
                                                     bool complete,
                                                     typename V::Sums (&sums)[ROWS][PANELS],
                                                     typename V::Sums (&totals)[ROWS][PANELS]) {
  const int offset = integer_offset<V>(p);
  const int middle = usual_zero(p.w) + offset;
  const float* inputs =
      complete && p.group_sums ? p.group_sums + place.row * p.ldg + group : nullptr;
  if (inputs && (p.w.zeros || middle != 0)) {
    for (int j = 0; j < PANELS; ++j) {
      const typename V::Sums zeros = p.w.zeros ? group_zeros<V>(p, place.panel + j, group, offset)
                                               : V::broadcast(static_cast<float>(middle));
      for (int i = 0; i < ROWS; ++i)
        sums[i][j] = V::scale_add(-inputs[i * p.ldg], zeros, sums[i][j]);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < PANELS; ++j) {
    const typename V::Sums scales = group_scales<V>(p, place.panel + j, group);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) V::add_product(totals[i][j], scales, sums[i][j]);
  }
  if (!inputs || !p.w.minimums) return;
#pragma GCC unroll 4
  for (int j = 0; j < PANELS; ++j) {
    const typename V::Sums minimums = group_minimums<V>(p, place.panel + j, group);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i)
      totals[i][j] = V::scale_add(inputs[i * p.ldg], minimums, totals[i][j]);
  }
}

template <typename V, int ROWS, int PANELS>
inline __attribute__((always_inline)) void store_totals(const IntegerOutputs& p,
                                                        const IntegerPlace& place,
                                                        typename V::Sums (&totals)[ROWS][PANELS]) {
  for (int j = 0; j < PANELS; ++j) {
    const int64_t output = (place.panel + j) * kPanelOutputs,
                  count = std::min(kPanelOutputs, p.w.n - output);
    for (int i = 0; i < ROWS; ++i) {
      float* y = p.y + (place.row + i) * p.ldy + output - p.first_output;
      typename V::Sums sum = totals[i][j];
      if (p.add)
        sum = V::add(sum, V::load(y, count));
      else if (p.bias)
        sum = V::add(sum, V::load(p.bias + output, count));
      V::store(y, count, sum);
    }
  }
}

template <typename V, typename S, int ROWS, int PANELS>
void integer_tile(const IntegerProduct& p, const IntegerPlace& place) {
  using T = typename V::Element;
  constexpr int kChains = 4 * ROWS * PANELS <= V::kTileSums ? 2 : 1;
  constexpr auto kSteps =
      std::make_integer_sequence<int, static_cast<int>(kChunkInputs) / V::kIntegerInputs>();
  const int64_t ldx = p.ldx, whole = p.w.k / kChunkInputs, group_chunks = group_chunks_of(p);
  const T* x = static_cast<const T*>(p.x) + place.row * ldx;
  typename V::Sums totals[ROWS][PANELS];
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < PANELS; ++j) totals[i][j] = V::zero();
  T last[ROWS * kChunkInputs] = {};
  const bool fetches = place.next[0] != nullptr;
  const uint8_t *chunks[PANELS], *next[PANELS];
  for (int j = 0; j < PANELS; ++j) chunks[j] = place.chunks[j], next[j] = place.next[j];
  for (int64_t c = p.chunk_begin, group = c / group_chunks; c < p.chunk_end; ++group) {
    const int64_t group_end = (group + 1) * group_chunks, end = std::min(p.chunk_end, group_end);
    typename V::Sums sums[kChains][ROWS][PANELS];
#pragma GCC unroll 2
    for (int chain = 0; chain < kChains; ++chain)
#pragma GCC unroll 16
      for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < PANELS; ++j) sums[chain][i][j] = V::zero();
    if (S::kPacked && fetches) {
      const int64_t scale_bytes = kPanelOutputs * (p.w.float_scales ? 4 : 2);
      for (int j = 0; j < PANELS; ++j)
        __builtin_prefetch(next[j] + p.w.scales_at + group * scale_bytes, 0, 2);
    }
    for (; c < end; ++c) {
      const int64_t offset = c * S::kChunkBytes;
      if (S::kPacked && fetches)
#pragma GCC unroll 4
        for (int j = 0; j < PANELS; ++j)
#pragma GCC unroll 2
          for (int64_t line = 0; line < S::kChunkBytes; line += 64)
            __builtin_prefetch(next[j] + offset + line, 0, 2);
      const T* inputs = x + c * kChunkInputs;
      int64_t stride = ldx;
      if (c == whole) {  // the last inputs, padded: what follows them in x may be out of bounds
        for (int i = 0; i < ROWS; ++i)
          std::copy_n(inputs + i * ldx, p.w.k - c * kChunkInputs, last + i * kChunkInputs);
        inputs = last;
        stride = kChunkInputs;
      }
      multiply_chunk<V, S>(sums, chunks, offset, inputs, stride, kSteps);
    }
    if constexpr (kChains == 2)
      for (int i = 0; i < ROWS; ++i)
        for (int j = 0; j < PANELS; ++j) sums[0][i][j] = V::add(sums[0][i][j], sums[1][i][j]);
    const bool complete = c == group_end || c * kChunkInputs >= p.w.k;
    add_group<V>(p, place, group, complete, sums[0], totals);
  }
  store_totals<V>(p, place, totals);
}

template <typename V, typename S, int PANELS, size_t... R>
constexpr auto integer_tiles(std::index_sequence<R...>) {
  return std::array<void (*)(const IntegerProduct&, const IntegerPlace&), sizeof...(R)>{
      integer_tile<V, S, static_cast<int>(R) + 1, PANELS>...};
}

// Groups of PANELS, all rows in blocks of even size; tiles[r] has r + 1 rows. chunks_of(panel): its
// integers. Returns the first panel that is left over.
template <int PANELS, typename Product, size_t ROWS, typename ChunksOf>
int64_t run_tiles(const Product& p,
                  const std::array<void (*)(const Product&, const IntegerPlace&), ROWS>& tiles,
                  int64_t panel, bool fetches, const ChunksOf& chunks_of) {
  const int64_t blocks = (p.m + ROWS - 1) / ROWS, all = panels_of(p.w.n);
  IntegerPlace place;
  for (; panel + PANELS <= p.panel_end; panel += PANELS) {
    place.panel = panel;
    const bool more = fetches && panel + 2 * PANELS <= all;
    for (int j = 0; j < PANELS; ++j) {
      place.chunks[j] = chunks_of(panel + j);
      place.next[j] = more ? p.w.data + (panel + PANELS + j) * p.w.panel_bytes : nullptr;
    }
    for (int64_t b = 0; b < blocks; ++b) {
      place.row = p.m * b / blocks;
      tiles[p.m * (b + 1) / blocks - place.row - 1](p, place);
      place.next[0] = nullptr;
    }
  }
  return panel;
}

template <typename V, typename S, int PANELS>
int64_t integer_groups(const IntegerProduct& p, int64_t panel) {
  if constexpr (PANELS > V::kTileSums) {
    return panel;
  } else {
    constexpr size_t kRows = std::min(kMostIntegerRows, V::kTileSums / PANELS);
    static constexpr auto kTiles = integer_tiles<V, S, PANELS>(std::make_index_sequence<kRows>());
    const int64_t chunks = p.chunk_end - p.chunk_begin;
    return run_tiles<PANELS>(p, kTiles, panel, S::kPacked, [&](int64_t index) {
      return S::kPacked ? p.w.data + index * p.w.panel_bytes
                        : static_cast<const uint8_t*>(p.decoded) +
                              ((index - p.panel_begin) * chunks - p.chunk_begin) * S::kChunkBytes;
    });
  }
}

// The widest tile that takes all rows at once; otherwise the one that reads the least.
template <typename V, typename S>
void multiply_from(const IntegerProduct& p) {
  constexpr int64_t kMany = V::kTileSums < 24 ? 1 : S::kPacked ? 2 : 4;
  const int64_t width = 4 * p.m <= V::kTileSums ? 4 : 2 * p.m <= V::kTileSums ? 2 : kMany;
  int64_t panel = p.panel_begin;
  if (width >= 4) panel = integer_groups<V, S, 4>(p, panel);
  if (width >= 2) panel = integer_groups<V, S, 2>(p, panel);
  integer_groups<V, S, 1>(p, panel);
}

template <typename V>
void multiply_integers_on(const IntegerProduct& p) {
  if (p.m <= 0) return;
  if constexpr (!kDecodesScaled<V>)
    if (p.decoded) return multiply_from<V, DecodedSource<V>>(p);
  if (p.w.bits == 4) return multiply_from<V, NibbleSource<V>>(p);
  multiply_from<V, ByteSource<V>>(p);
}

// What a panel's decoded weights of one group need: w = (decoded - zeros) · scales + minimums.
template <typename V>
struct GroupTerms {
  typename V::Sums zeros, scales, minimums;
};
template <typename V>
inline __attribute__((always_inline)) GroupTerms<V> group_terms(const IntegerProduct& p,
                                                                int64_t panel, int64_t group) {
  const int offset = integer_offset<V>(p);
  const auto middle = static_cast<float>(usual_zero(p.w) + offset);
  return {p.w.zeros ? group_zeros<V>(p, panel, group, offset) : V::broadcast(middle),
          group_scales<V>(p, panel, group),
          p.w.minimums ? group_minimums<V>(p, panel, group) : V::zero()};
}

template <typename V, typename S, int... I>
void decode_from(const IntegerProduct& p, typename V::Element* out,
                 std::integer_sequence<int, I...>) {
  const int64_t group_chunks = group_chunks_of(p);
  for (int64_t panel = p.panel_begin; panel < p.panel_end; ++panel) {
    const uint8_t* chunks = p.w.data + panel * p.w.panel_bytes;
    for (int64_t c = p.chunk_begin; c < p.chunk_end;) {
      const int64_t group = c / group_chunks,
                    end = std::min(p.chunk_end, (group + 1) * group_chunks);
      GroupTerms<V> terms;
      if constexpr (kDecodesScaled<V>) terms = group_terms<V>(p, panel, group);
      const auto stored = [&](typename V::Weights w) __attribute__((always_inline)) {
        if constexpr (kDecodesScaled<V>)
          return V::decoded_weight(w, terms.zeros, terms.scales, terms.minimums);
        else
          return w;
      };
      for (; c < end; ++c) {
        __builtin_prefetch(chunks + (c + 16) * S::kChunkBytes, 0, 3);
        (V::store_weights(out + I * V::kIntegerInputs * kPanelOutputs,
                          stored(S::template weights<I>(chunks + c * S::kChunkBytes))),
         ...);
        out += kChunkInputs * kPanelOutputs;
      }
    }
  }
}

// p's panels and chunks, [panel][chunk]: the integers as multiply_integers_on() reads them, or, in
// float, the weights in panels of floats.
template <typename V>
void decode_integers_on(const IntegerProduct& p, void* decoded) {
  constexpr auto kSteps =
      std::make_integer_sequence<int, static_cast<int>(kChunkInputs) / V::kIntegerInputs>();
  auto* out = static_cast<typename V::Element*>(decoded);
  if (p.w.bits == 4) return decode_from<V, NibbleSource<V>>(p, out, kSteps);
  decode_from<V, ByteSource<V>>(p, out, kSteps);
}

}  // namespace
}  // namespace valora::kernels
