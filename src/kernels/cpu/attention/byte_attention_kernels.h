// The loops of the attention kernels for an 8-bit KV cache, written over the KvVectors of an
// instruction set. As in product_kernels.h, each file compiled for an instruction set has its own
// copy.
//
// KvVectors V are Vectors of float (product_kernels.h) and also provide
//   kRows                   rows per tile whose sums fit into registers
//   numbers<FORMAT>(p, even, odd)
//                           the numbers of the pairs of 16 outputs at p, as Sums
//   store_pairs(p, even, odd)
//                           stores them as 32 bf16, which represent them exactly
//   kIntegers               true if the following are provided
//   Words, words(p)         the int16 of the pairs of 16 outputs at p
//   Ints, no_ints(), dot(ints, words, pair), floats_of(ints)
//                           sums of products in int32; pair: two int16 of a row, broadcast
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/cpu/attention/byte_attention.h"

namespace valora::kernels {
namespace {

// A tile's sums in fp32.
template <typename V, KvFormat FORMAT, int ROWS>
struct FloatSums {
  using Input = float;
  typename V::Sums sums[ROWS];

  inline __attribute__((always_inline)) void clear() {
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) sums[i] = V::zero();
  }
  // inputs: of the tile's first row; the row stride is ld.
  inline __attribute__((always_inline)) void add(const uint8_t* pair, const float* inputs,
                                                 int64_t ld) {
    typename V::Sums even, odd;
    V::template numbers<FORMAT>(pair, even, odd);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i)
      V::multiply_add(sums[i], V::template value<0>(inputs + i * ld), even);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i)
      V::multiply_add(sums[i], V::template value<0>(inputs + i * ld + 1), odd);
  }
  inline __attribute__((always_inline)) typename V::Sums of(int row) const { return sums[row]; }
};

// The same in int32.
template <typename V, int ROWS>
struct IntegerSums {
  using Input = int16_t;
  typename V::Ints sums[ROWS];

  inline __attribute__((always_inline)) void clear() {
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) sums[i] = V::no_ints();
  }
  inline __attribute__((always_inline)) void add(const uint8_t* pair, const int16_t* inputs,
                                                 int64_t ld) {
    const typename V::Words words = V::words(pair);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) {
      int32_t two;
      std::memcpy(&two, inputs + i * ld, sizeof two);
      V::dot(sums[i], words, two);
    }
  }
  inline __attribute__((always_inline)) typename V::Sums of(int row) const {
    return V::floats_of(sums[row]);
  }
};

template <typename V, typename S, int ROWS>
void score_tile(const ByteScores& s, int64_t row) {
  const auto* q = static_cast<const typename S::Input*>(s.q) + row * s.ldq;
  const int64_t pairs = s.run.form.key_pairs(), values_at = s.run.form.values_at();
  for (int64_t b = 0; b < s.run.blocks; ++b) {
    const uint8_t* const head = s.run.heads[b];
    S sums;
    sums.clear();
    for (int64_t p = 0; p < pairs; ++p) {
      // The values follow the keys in memory and are read next.
      if (row == 0) __builtin_prefetch(head + values_at + p * kPairBytes, 0, 2);
      sums.add(head + p * kPairBytes, q + 2 * p, s.ldq);
    }
    const typename V::Sums scales =
        V::load(reinterpret_cast<const bf16*>(head + s.run.form.key_scales_at()), kPanelOutputs);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) {
      typename V::Sums scaled = V::zero();
      V::add_product(scaled, scales, V::scale(s.scales[row + i], sums.of(i)));
      V::store(s.scores + (row + i) * s.ld + b * kPanelOutputs, kPanelOutputs, scaled);
    }
  }
}

template <typename V, typename S, int ROWS>
void byte_value_tile(const ByteValueSum& s, int64_t row, int64_t panel) {
  constexpr int64_t kPairs = kBlockTokens / 2;
  const auto* weights = static_cast<const typename S::Input*>(s.weights) + row * s.ldw;
  const int64_t width = panels_of(s.run.form.dim) * kPanelOutputs, at = panel * kPairs * kPairBytes;
  const bool fetches = s.run.fetch && row == 0;
  S sums;
  sums.clear();
  for (int64_t b = 0; b < s.run.blocks; ++b) {
    const uint8_t* values = s.run.heads[b] + s.run.form.values_at() + at;
    if (fetches)
      for (int64_t i = 0; i < kPairs * kPairBytes; i += 64)
        __builtin_prefetch(s.run.fetch[b] + at + i, 0, 2);
#pragma GCC unroll 2
    for (int64_t p = 0; p < kPairs; ++p)
      sums.add(values + p * kPairBytes, weights + b * kBlockTokens + 2 * p, s.ldw);
  }
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i) {
    float* out = s.sums + (row + i) * width + panel * kPanelOutputs;
    V::store(out, kPanelOutputs,
             V::scale_add(s.scales[row + i], sums.of(i), V::load(out, kPanelOutputs)));
  }
}

// Calls tile(std::integral_constant rows, first row) for tiles of at most kRows rows, of nearly
// equal size.
template <typename V, typename Tile, size_t... R>
void in_row_tiles(int64_t rows, const Tile& tile, std::index_sequence<R...>) {
  const int64_t count = (rows + V::kRows - 1) / V::kRows;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = rows * i / count, size = rows * (i + 1) / count - row;
    ((size == static_cast<int64_t>(R) + 1 &&
      (tile(std::integral_constant<int, static_cast<int>(R) + 1>(), row), true)) ||
     ...);
  }
}

template <typename V, typename Tile>
void in_row_tiles(int64_t rows, const Tile& tile) {
  in_row_tiles<V>(rows, tile, std::make_index_sequence<V::kRows>());
}

template <typename V, KvFormat FORMAT>
void byte_scores(const ByteScores& s) {
  in_row_tiles<V>(s.rows, [&](auto rows, int64_t row) {
    score_tile<V, FloatSums<V, FORMAT, rows>, rows>(s, row);
  });
}
template <typename V>
void integer_scores(const ByteScores& s) {
  in_row_tiles<V>(
      s.rows, [&](auto rows, int64_t row) { score_tile<V, IntegerSums<V, rows>, rows>(s, row); });
}

template <typename V, KvFormat FORMAT>
void add_byte_values(const ByteValueSum& s) {
  for (int64_t panel = 0; panel < panels_of(s.run.form.dim); ++panel)
    in_row_tiles<V>(s.rows, [&](auto rows, int64_t row) {
      byte_value_tile<V, FloatSums<V, FORMAT, rows>, rows>(s, row, panel);
    });
}
template <typename V>
void add_integer_values(const ByteValueSum& s) {
  for (int64_t panel = 0; panel < panels_of(s.run.form.dim); ++panel)
    in_row_tiles<V>(s.rows, [&](auto rows, int64_t row) {
      byte_value_tile<V, IntegerSums<V, rows>, rows>(s, row, panel);
    });
}

template <typename V, KvFormat FORMAT>
void decode_byte_floats(const uint8_t* bytes, int64_t pairs, float* panels) {
  for (int64_t p = 0; p < pairs; ++p) {
    typename V::Sums even, odd;
    V::template numbers<FORMAT>(bytes + p * kPairBytes, even, odd);
    V::store(panels + p * kPairBytes, kPanelOutputs, even);
    V::store(panels + p * kPairBytes + kPanelOutputs, kPanelOutputs, odd);
  }
}
template <typename V, KvFormat FORMAT>
void decode_byte_bf16(const uint8_t* bytes, int64_t pairs, bf16* panels) {
  for (int64_t p = 0; p < pairs; ++p) {
    typename V::Sums even, odd;
    V::template numbers<FORMAT>(bytes + p * kPairBytes, even, odd);
    V::store_pairs(panels + p * kPairBytes, even, odd);
  }
}

template <typename V, KvFormat FORMAT>
consteval ByteFormatKernels byte_format_kernels_of() {
  ByteFormatKernels kernels{.integer_scores = nullptr,
                            .add_integer_values = nullptr,
                            .scores = byte_scores<V, FORMAT>,
                            .add_values = add_byte_values<V, FORMAT>,
                            .decode_floats = decode_byte_floats<V, FORMAT>,
                            .decode_bf16 = decode_byte_bf16<V, FORMAT>};
  if constexpr (V::kIntegers && FORMAT == KvFormat::kInt8) {
    kernels.integer_scores = integer_scores<V>;
    kernels.add_integer_values = add_integer_values<V>;
  }
  return kernels;
}

template <typename V>
consteval ByteAttentionKernels byte_attention_kernels_of() {
  return {byte_format_kernels_of<V, KvFormat::kInt8>(),
          byte_format_kernels_of<V, KvFormat::kFp8>()};
}

}  // namespace
}  // namespace valora::kernels
