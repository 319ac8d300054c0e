// The loops of the attention kernels for an 8-bit KV cache, written over the KvVectors of an
// instruction set (byte_sums.h).
#pragma once

#include <algorithm>
#include <utility>

#include "kernels/cpu/attention/byte_softmax_kernels.h"
#include "kernels/cpu/attention/byte_sums.h"

namespace valora::kernels {
namespace {

// The scores of ROWS rows and BLOCKS blocks. Bytes need one sum per row and block, so two blocks
// share the rows' inputs.
template <typename V, KvFormat FORMAT, RowCode CODE, int ROWS, int BLOCKS>
inline __attribute__((always_inline)) void score_blocks(const ByteScores& s, int64_t row,
                                                        int64_t block) {
  const uint8_t* const q = s.q + row * s.ldq;
  const int64_t quads = s.run.form.key_quads(), ldq = s.ldq, scales_at = s.run.form.key_scales_at();
  const bool fetches = row == 0;
  const uint8_t *heads[BLOCKS], *next[BLOCKS];
  QuadSums<V, FORMAT, CODE, ROWS> sums[BLOCKS];
#pragma GCC unroll 2
  for (int b = 0; b < BLOCKS; ++b) {
    heads[b] = s.run.heads[block + b];
    next[b] = s.run.fetch[block + b];
    if (fetches) __builtin_prefetch(next[b] + scales_at, 0, 2);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) sums[b].start(i, s.starts[row + i]);
  }
  for (int64_t p = 0; p < quads; ++p) {
#pragma GCC unroll 2
    for (int b = 0; b < BLOCKS; ++b) {
      if (fetches) __builtin_prefetch(next[b] + p * kQuadBytes, 0, 2);
      sums[b].add_key(heads[b] + p * kQuadBytes, q + p * query_quad_bytes(CODE), ldq);
    }
  }
#pragma GCC unroll 2
  for (int b = 0; b < BLOCKS; ++b) {
    const typename V::Sums scales =
        V::load(reinterpret_cast<const bf16*>(heads[b] + scales_at), kPanelOutputs);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) {
      typename V::Sums scaled = V::zero();
      V::add_product(scaled, scales, V::scale(s.scales[row + i], sums[b].score(i)));
      V::store(s.scores + (row + i) * s.ld + (block + b) * kPanelOutputs, kPanelOutputs, scaled);
    }
  }
}

template <typename V, KvFormat FORMAT, RowCode CODE, int ROWS>
void score_tile(const ByteScores& s, int64_t row) {
  constexpr int kBlocks = CODE == RowCode::kBytes ? 2 : 1;
  int64_t block = 0;
  for (; block + kBlocks <= s.run.blocks; block += kBlocks)
    score_blocks<V, FORMAT, CODE, ROWS, kBlocks>(s, row, block);
  if (block < s.run.blocks) score_blocks<V, FORMAT, CODE, ROWS, 1>(s, row, block);
}

template <typename V, typename S, RowCode CODE, int ROWS>
void byte_value_tile(const ByteValueSum& s, int64_t row, int64_t panel) {
  constexpr int64_t kQuads = kBlockTokens / kQuad;
  const uint8_t* const weights = s.weights + row * s.ldw;
  const int64_t width = panels_of(s.run.form.dim) * kPanelOutputs, ldw = s.ldw,
                at = s.run.form.values_at() + panel * kQuads * kQuadBytes;
  const bool fetches = row == 0;
  S sums;
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i) sums.start(i, 0);
  for (int64_t b = 0; b < s.run.blocks; ++b) {
    const uint8_t* const values = s.run.heads[b] + at;
    const uint8_t* const next = s.run.fetch[b] + at;
    for (int64_t p = 0; p < kQuads; ++p) {
      if (fetches) __builtin_prefetch(next + p * kQuadBytes, 0, 2);
      sums.add_value(values + p * kQuadBytes, weights + (b * kQuads + p) * weight_quad_bytes(CODE),
                     ldw);
    }
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

template <typename V, KvFormat FORMAT, RowCode CODE>
void byte_scores(const ByteScores& s) {
  in_row_tiles<V>(s.rows,
                  [&](auto rows, int64_t row) { score_tile<V, FORMAT, CODE, rows>(s, row); });
}

template <typename V, KvFormat FORMAT, RowCode CODE>
void add_byte_values(const ByteValueSum& s) {
  for (int64_t panel = 0; panel < panels_of(s.run.form.dim); ++panel)
    in_row_tiles<V>(s.rows, [&](auto rows, int64_t row) {
      byte_value_tile<V, QuadSums<V, FORMAT, CODE, rows>, CODE, rows>(s, row, panel);
    });
}

template <typename V, KvFormat FORMAT>
void decode_byte_floats(const uint8_t* bytes, int64_t quads, float* panels) {
  for (int64_t p = 0; p < quads; ++p, bytes += kQuadBytes, panels += kQuadBytes) {
    V::store(panels, kPanelOutputs, V::template numbers<FORMAT, 0>(bytes));
    V::store(panels + 1 * kPanelOutputs, kPanelOutputs, V::template numbers<FORMAT, 1>(bytes));
    V::store(panels + 2 * kPanelOutputs, kPanelOutputs, V::template numbers<FORMAT, 2>(bytes));
    V::store(panels + 3 * kPanelOutputs, kPanelOutputs, V::template numbers<FORMAT, 3>(bytes));
  }
}
template <typename V, KvFormat FORMAT>
void decode_byte_bf16(const uint8_t* bytes, int64_t quads, bf16* panels) {
  for (int64_t p = 0; p < quads; ++p)
    V::template decode<FORMAT>(bytes + p * kQuadBytes, panels + p * kQuadBytes);
}

template <typename V, KvFormat FORMAT, RowCode CODE>
consteval ByteArithmetic byte_arithmetic_of() {
  return {CODE, code_queries<V, CODE>, byte_scores<V, FORMAT, CODE>, weigh_keys<V, CODE>,
          add_byte_values<V, FORMAT, CODE>};
}

template <typename V, KvFormat FORMAT>
consteval ByteFormatKernels byte_format_kernels_of() {
  return {.of_bf16 = byte_arithmetic_of<V, FORMAT, V::template kCode<FORMAT>>(),
          .of_float = byte_arithmetic_of<V, FORMAT, RowCode::kFloats>(),
          .decode_floats = decode_byte_floats<V, FORMAT>,
          .decode_bf16 = decode_byte_bf16<V, FORMAT>};
}

template <typename V>
consteval ByteAttentionKernels byte_attention_kernels_of() {
  return {byte_format_kernels_of<V, KvFormat::kInt8>(),
          byte_format_kernels_of<V, KvFormat::kFp8>()};
}

}  // namespace
}  // namespace valora::kernels
