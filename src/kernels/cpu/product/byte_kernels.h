// The loops of the products with inputs of 8 bits, over the ByteVectors of an instruction set. As
// in product_kernels.h, each file that is compiled for an instruction set has its own copy.
//
// ByteVectors V are Vectors of float (product_kernels.h: Sums, zero, add, load, store, broadcast,
// scale, scale_add, add_product) and have
//   kTileSums               number of Ints that a tile keeps in registers
//   Ints                    sums of integers for 16 outputs
//   no_ints()
//   kMostSpan<BITS>         inputs of a span, so that Ints do not overflow
//   kInputBytes<BITS>       bytes per input: a step takes 4 bytes of a row
//   kOffset<BITS>           weights are the values plus this
//   weights<BITS, STEP>(chunk)
//                           the weights of 16 outputs for a step's inputs
//   inputs(x)               4 bytes of a row, broadcast
//   dot<BITS>(ints, weights, inputs)
//   floats_of<BITS>(ints)   as Sums
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/cpu/product/byte_product.h"
#include "kernels/cpu/product/integer_kernels.h"

namespace valora::kernels {
namespace {

template <typename V, int BITS, int ROWS, int PANELS, int... STEPS>
inline __attribute__((always_inline)) void dot_chunk(typename V::Ints (&ints)[ROWS][PANELS],
                                                     const uint8_t* const* chunks, int64_t offset,
                                                     const uint8_t* x, int64_t ldx,
                                                     std::integer_sequence<int, STEPS...>) {
  const auto step = [&]<int STEP>(std::integral_constant<int, STEP>)
                        __attribute__((always_inline)) {
                          typename V::Weights w[PANELS];
#pragma GCC unroll 4
                          for (int j = 0; j < PANELS; ++j)
                            w[j] = V::template weights<BITS, STEP>(chunks[j] + offset);
#pragma GCC unroll 16
                          for (int i = 0; i < ROWS; ++i) {
                            const auto value = V::inputs(x + i * ldx + 4 * STEP);
#pragma GCC unroll 4
                            for (int j = 0; j < PANELS; ++j)
                              V::template dot<BITS>(ints[i][j], w[j], value);
                          }
                        };
  (step(std::integral_constant<int, STEPS>()), ...);
}

// totals += (ints - zero · sum of q) · scale of x · scale of w + minimum · sum of q · scale of x,
// for one span.
template <typename V, int BITS, int ROWS, int PANELS>
inline __attribute__((always_inline)) void add_span(const ByteProduct& p, const IntegerPlace& place,
                                                    int64_t span, int64_t group,
                                                    typename V::Ints (&ints)[ROWS][PANELS],
                                                    typename V::Sums (&totals)[ROWS][PANELS]) {
  const int middle = usual_zero(p.w) + V::template kOffset<BITS>;
  const int64_t at = place.row * p.rows.spans + span;
#pragma GCC unroll 4
  for (int j = 0; j < PANELS; ++j) {
    const typename V::Sums scales = group_scales<V>(p, place.panel + j, group);
    typename V::Sums zeros = V::broadcast(static_cast<float>(middle));
    if (p.w.zeros) zeros = group_zeros<V>(p, place.panel + j, group, V::template kOffset<BITS>);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) {
      const int64_t row = at + i * p.rows.spans;
      typename V::Sums sum = V::template floats_of<BITS>(ints[i][j]);
      if (middle != 0 || p.w.zeros) sum = V::scale_add(-p.rows.sums[row], zeros, sum);
      V::add_product(totals[i][j], V::scale(p.rows.scales[row], scales), sum);
    }
    if (!p.w.minimums) continue;
    const typename V::Sums minimums = group_minimums<V>(p, place.panel + j, group);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) {
      const int64_t row = at + i * p.rows.spans;
      totals[i][j] = V::scale_add(p.rows.sums[row] * p.rows.scales[row], minimums, totals[i][j]);
    }
  }
}

template <typename V, int BITS, int ROWS, int PANELS>
void byte_tile(const ByteProduct& p, const IntegerPlace& place) {
  constexpr int kInputBytes = V::template kInputBytes<BITS>;
  constexpr int64_t kChunkBytes = kPanelOutputs * BITS;
  constexpr auto kSteps =
      std::make_integer_sequence<int, static_cast<int>(kChunkInputs) * kInputBytes / 4>();
  const int64_t all = (p.w.k + kChunkInputs - 1) / kChunkInputs, ldx = p.rows.ldx,
                group_chunks = group_chunks_of(p), span_chunks = p.rows.span / kChunkInputs;
  const uint8_t* x = p.rows.x + place.row * ldx;
  const uint8_t *chunks[PANELS], *next[PANELS];
  for (int j = 0; j < PANELS; ++j) chunks[j] = place.chunks[j], next[j] = place.next[j];
  const bool fetches = place.next[0] != nullptr;
  typename V::Sums totals[ROWS][PANELS];
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < PANELS; ++j) totals[i][j] = V::zero();
  for (int64_t c = 0, span = 0; c < all; ++span) {
    const int64_t end = std::min(all, c + span_chunks), group = c / group_chunks;
    typename V::Ints ints[ROWS][PANELS];
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < PANELS; ++j) ints[i][j] = V::no_ints();
    if (fetches) {
      const int64_t scale_bytes = kPanelOutputs * (p.w.float_scales ? 4 : 2);
      for (int j = 0; j < PANELS; ++j)
        __builtin_prefetch(next[j] + p.w.scales_at + group * scale_bytes, 0, 2);
    }
    for (; c < end; ++c) {
      const int64_t offset = c * kChunkBytes;
      if (fetches)
#pragma GCC unroll 4
        for (int j = 0; j < PANELS; ++j)
#pragma GCC unroll 2
          for (int64_t line = 0; line < kChunkBytes; line += 64)
            __builtin_prefetch(next[j] + offset + line, 0, 2);
      dot_chunk<V, BITS>(ints, chunks, offset, x + c * kChunkInputs * kInputBytes, ldx, kSteps);
    }
    add_span<V, BITS>(p, place, span, group, ints, totals);
  }
  store_totals<V>(p, place, totals);
}

template <typename V, int BITS, int PANELS, size_t... R>
constexpr auto byte_tiles(std::index_sequence<R...>) {
  return std::array<void (*)(const ByteProduct&, const IntegerPlace&), sizeof...(R)>{
      byte_tile<V, BITS, static_cast<int>(R) + 1, PANELS>...};
}

template <typename V, int BITS, int PANELS>
int64_t byte_groups(const ByteProduct& p, int64_t panel) {
  if constexpr (PANELS > V::kTileSums) {
    return panel;
  } else {
    constexpr size_t kRows = V::kTileSums / PANELS;
    static constexpr auto kTiles = byte_tiles<V, BITS, PANELS>(std::make_index_sequence<kRows>());
    return run_tiles<PANELS>(p, kTiles, panel, true,
                             [&](int64_t index) { return p.w.data + index * p.w.panel_bytes; });
  }
}

// The widest tile that takes all rows at once.
template <typename V, int BITS>
void multiply_bytes_from(const ByteProduct& p) {
  int64_t panel = p.panel_begin;
  if (4 * p.m <= V::kTileSums) panel = byte_groups<V, BITS, 4>(p, panel);
  if (2 * p.m <= V::kTileSums || V::kTileSums >= 12) panel = byte_groups<V, BITS, 2>(p, panel);
  byte_groups<V, BITS, 1>(p, panel);
}

template <typename V>
void multiply_bytes_on(const ByteProduct& p) {
  if (p.m <= 0) return;
  if (p.w.bits == 4) return multiply_bytes_from<V, 4>(p);
  multiply_bytes_from<V, 8>(p);
}

template <typename V>
consteval ByteKernels byte_kernels_of() {
  return {multiply_bytes_on<V>,
          {V::template kMostSpan<4>, V::template kMostSpan<8>},
          {V::template kInputBytes<4>, V::template kInputBytes<8>}};
}

}  // namespace
}  // namespace valora::kernels
