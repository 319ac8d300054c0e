// The loops of products with 8-bit inputs, written over the ByteVectors of an instruction set. As
// in product_kernels.h, each file compiled for an instruction set has its own copy.
//
// ByteVectors V are Vectors of float (product_kernels.h: Sums, zero, add, load, store, broadcast,
// scale, scale_add, add_product) and also provide
//   kTileSums               number of Ints that fit into registers per tile
//   kBlockSums              kTileSums of tiles with sums per block (byte_tile); 0: no such tiles
//   Ints                    sums of integers for 16 outputs
//   no_ints()
//   kStarts                 true if ints_from<BITS>(sum) starts all sums at `sum`, and weights<>
//                           are values without an offset
//   kMostSpan<BITS>         most inputs per span for which Ints do not overflow
//   kInputBytes<BITS>       bytes per input; each step takes 4 bytes of a row
//   kOffset<BITS>           weights are stored as values plus this
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

// Chunks per span, if the sums have so little room that most spans are as short.
inline constexpr int kUnrolledChunks = 4;
template <typename V, int BITS>
inline constexpr bool kShortSpans = V::template kMostSpan<BITS> == kUnrolledChunks * kChunkInputs;

// The zero-point to subtract from all weights of a tile, as its kernel reads them.
template <typename V, int BITS>
int middle_of(const IntegerPanels& w) {
  return usual_zero(w) + V::template kOffset<BITS>;
}

// Starts the sums of a span, where possible at what the zero-point subtracts, so that no later work
// is needed for it.
template <typename V, int BITS, int ROWS, int PANELS>
inline __attribute__((always_inline)) void start_span(const ByteProduct& p,
                                                      const IntegerPlace& place, int64_t span,
                                                      typename V::Ints (&ints)[ROWS][PANELS]) {
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i) {
    typename V::Ints start = V::no_ints();
    if constexpr (V::kStarts)
      start = V::template ints_from<BITS>(p.rows.starts[(place.row + i) * p.rows.spans + span]);
#pragma GCC unroll 4
    for (int j = 0; j < PANELS; ++j) ints[i][j] = start;
  }
}

// totals += (ints - zero · sum of q) · scale of w + minimum · sum of q, for one span; each term
// times the scale of x unless SCALED is false. PLAIN: the weights have scales in bf16 alone.
template <typename V, int BITS, bool SCALED, bool PLAIN, int ROWS, int PANELS>
inline __attribute__((always_inline)) void add_span(const ByteProduct& p, const IntegerPlace& place,
                                                    int64_t span, int64_t group,
                                                    typename V::Ints (&ints)[ROWS][PANELS],
                                                    typename V::Sums (&totals)[ROWS][PANELS]) {
  const int middle = V::kStarts ? 0 : middle_of<V, BITS>(p.w);
  const int64_t at = place.row * p.rows.spans + span;
#pragma GCC unroll 4
  for (int j = 0; j < PANELS; ++j) {
    const typename V::Sums scales = group_scales<V, PLAIN>(p, place.panel + j, group);
    typename V::Sums zeros = V::broadcast(static_cast<float>(middle));
    if (!PLAIN && p.w.zeros)
      zeros = group_zeros<V>(p, place.panel + j, group, V::template kOffset<BITS>);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) {
      const int64_t row = at + i * p.rows.spans;
      typename V::Sums sum = V::template floats_of<BITS>(ints[i][j]);
      if (middle != 0 || (!PLAIN && p.w.zeros)) sum = V::scale_add(-p.rows.sums[row], zeros, sum);
      V::add_product(totals[i][j], SCALED ? V::scale(p.rows.scales[row], scales) : scales, sum);
    }
    if (PLAIN || !p.w.minimums) continue;
    const typename V::Sums minimums = group_minimums<V>(p, place.panel + j, group);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) {
      const int64_t row = at + i * p.rows.spans;
      const float factor = SCALED ? p.rows.sums[row] * p.rows.scales[row] : p.rows.sums[row];
      totals[i][j] = V::scale_add(factor, minimums, totals[i][j]);
    }
  }
}

// totals += sums · scale of x, for the block that ends with this span. Clears the sums.
template <typename V, int ROWS, int PANELS>
inline __attribute__((always_inline)) void end_block(const ByteProduct& p,
                                                     const IntegerPlace& place, int64_t span,
                                                     typename V::Sums (&sums)[ROWS][PANELS],
                                                     typename V::Sums (&totals)[ROWS][PANELS]) {
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < PANELS; ++j) {
      const float scale = p.rows.scales[(place.row + i) * p.rows.spans + span];
      totals[i][j] = V::scale_add(scale, sums[i][j], totals[i][j]);
      sums[i][j] = V::zero();
    }
}

// Adds the products of a span's chunks. CHUNKS: how many, or 0 if only the range tells.
template <typename V, int BITS, int CHUNKS, int ROWS, int PANELS>
inline __attribute__((always_inline)) void dot_span(
    typename V::Ints (&ints)[ROWS][PANELS], const uint8_t* const* chunks, const ChunkRange& range,
    const uint8_t* x, int64_t ldx, PanelFetch<PANELS, IntegerSource<V, BITS>::kChunkBytes>& fetch) {
  constexpr int kInputBytes = V::template kInputBytes<BITS>;
  constexpr auto kSteps =
      std::make_integer_sequence<int, static_cast<int>(kChunkInputs) * kInputBytes / 4>();
  const auto dot = [&](int64_t c) __attribute__((always_inline)) {
    dot_chunk<V, BITS>(ints, chunks, c * IntegerSource<V, BITS>::kChunkBytes,
                       x + c * kChunkInputs * kInputBytes, ldx, kSteps);
  };
  if constexpr (CHUNKS > 0) {
    fetch.template fetch_chunks<CHUNKS>();
#pragma GCC unroll 4
    for (int i = 0; i < CHUNKS; ++i) dot(range.begin + i);
  } else {
    for (int64_t c = range.begin; c < range.end; ++c) {
      fetch.fetch_chunks();
      dot(c);
    }
  }
}

// BLOCKS: the spans of a block are added before their sum is multiplied by the scale of x, which
// costs registers but saves a multiplication per span.
template <typename V, int BITS, bool BLOCKS, int ROWS, int PANELS>
void byte_tile(const ByteProduct& p, const IntegerPlace& place) {
  const int64_t all = chunks_of(p.w), ldx = p.rows.ldx, group_chunks = group_chunks_of(p),
                span_chunks = p.rows.span / kChunkInputs;
  const uint8_t* x = p.rows.x + place.row * ldx;
  const uint8_t* chunks[PANELS];
  for (int j = 0; j < PANELS; ++j) chunks[j] = place.chunks[j];
  PanelFetch<PANELS, IntegerSource<V, BITS>::kChunkBytes> fetch(p, place);
  typename V::Sums totals[ROWS][PANELS], sums[BLOCKS ? ROWS : 1][BLOCKS ? PANELS : 1];
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < PANELS; ++j) {
      totals[i][j] = V::zero();
      if constexpr (BLOCKS) sums[i][j] = V::zero();
    }
  // Counted: two divisions per span took 3 % of the time of one row.
  int64_t span = 0, group = 0, group_end = group_chunks, block_left = p.rows.block_spans;
  // Returns where the next span begins. CHUNKS: as of dot_span; PLAIN: as of add_span.
  const auto run_span = [&]<int CHUNKS, bool PLAIN>(int64_t c) __attribute__((always_inline)) {
    if (c == group_end) ++group, group_end += group_chunks;
    const int64_t end = CHUNKS > 0 ? c + CHUNKS : std::min(all, c + span_chunks);
    typename V::Ints ints[ROWS][PANELS];
    start_span<V, BITS>(p, place, span, ints);
    fetch.fetch_scales(group);
    dot_span<V, BITS, CHUNKS>(ints, chunks, {c, end}, x, ldx, fetch);
    if constexpr (BLOCKS) {
      add_span<V, BITS, false, PLAIN>(p, place, span, group, ints, sums);
      if (--block_left == 0 || end == all) {
        end_block<V>(p, place, span, sums, totals);
        block_left = p.rows.block_spans;
      }
    } else {
      add_span<V, BITS, true, PLAIN>(p, place, span, group, ints, totals);
    }
    ++span;
    return end;
  };
  int64_t c = 0;
  if constexpr (kShortSpans<V, BITS>) {
    const int64_t last = span_chunks == kUnrolledChunks ? all - kUnrolledChunks : -1;
    if (!p.w.zeros && !p.w.minimums && !p.w.float_scales)
      while (c <= last) c = run_span.template operator()<kUnrolledChunks, true>(c);
    while (c <= last) c = run_span.template operator()<kUnrolledChunks, false>(c);
  }
  while (c < all) c = run_span.template operator()<0, false>(c);
  store_totals<V>(p, place, totals);
}

template <typename V, int BITS, bool BLOCKS, int PANELS, size_t... R>
constexpr auto byte_tiles(std::index_sequence<R...>) {
  return std::array<void (*)(const ByteProduct&, const IntegerPlace&), sizeof...(R)>{
      byte_tile<V, BITS, BLOCKS, static_cast<int>(R) + 1, PANELS>...};
}

template <typename V, bool BLOCKS>
inline constexpr int kByteSums = BLOCKS ? V::kBlockSums : V::kTileSums;

template <typename V, int BITS, bool BLOCKS, int PANELS>
int64_t byte_groups(const ByteProduct& p, int64_t panel) {
  constexpr int kSums = kByteSums<V, BLOCKS>;
  if constexpr (PANELS > most_panels(kSums)) {
    return panel;
  } else {
    static constexpr auto kTiles =
        byte_tiles<V, BITS, BLOCKS, PANELS>(std::make_index_sequence<kSums / PANELS>());
    return run_tiles<PANELS>(p, kTiles, panel, fetches_near(p.m, kSums));
  }
}

// Uses the widest tile that takes all rows at once; with many rows, two panels if registers
// suffice. One row is limited by reading weights: of 8 bits fastest as one stream, unless tiles are
// wide or fetches near.
template <typename V, int BITS, bool BLOCKS>
void multiply_bytes_from(const ByteProduct& p) {
  constexpr int kSums = kByteSums<V, BLOCKS>;
  int64_t panel = p.panel_begin;
  if (4 * p.m <= kSums) panel = byte_groups<V, BITS, BLOCKS, 4>(p, panel);
  const bool one_stream =
      p.m == 1 && BITS == 8 && most_panels(kSums) < 4 && !fetches_near(1, kSums);
  if (!one_stream && (2 * p.m <= kSums || kSums >= 8))
    panel = byte_groups<V, BITS, BLOCKS, 2>(p, panel);
  byte_groups<V, BITS, BLOCKS, 1>(p, panel);
}

// With longer spans, one multiplication per span costs less than smaller tiles do.
inline constexpr int64_t kLongestBlockSpan = 64;

template <typename V, int BITS>
void multiply_spans(const ByteProduct& p) {
  if constexpr (V::kBlockSums > 0)
    if (p.rows.block_spans > 1 && p.rows.span <= kLongestBlockSpan)
      return multiply_bytes_from<V, BITS, true>(p);
  multiply_bytes_from<V, BITS, false>(p);
}

template <typename V>
void multiply_bytes_on(const ByteProduct& p) {
  if (p.m <= 0) return;
  with_bits(p.w.bits, [&](auto bits) { multiply_spans<V, bits>(p); });
}

template <typename V>
consteval ByteKernels byte_kernels_of() {
  return {multiply_bytes_on<V>,
          per_bits<int64_t>([](auto bits) { return V::template kMostSpan<bits>; }),
          per_bits<int>([](auto bits) { return V::template kInputBytes<bits>; }), V::kStarts};
}

}  // namespace
}  // namespace valora::kernels
