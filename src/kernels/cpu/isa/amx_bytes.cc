#ifdef __x86_64__

// Products of bytes with AMX: one tdpbsud multiplies 16 rows of 64 inputs by the weights of 16
// outputs. Spans are summed in tile registers, and their sums scaled by AVX-512.
#include "kernels/cpu/isa/amx.h"
#include "kernels/cpu/isa/isa_kernels.h"
#include "kernels/cpu/isa/vnni.h"
#include "kernels/cpu/product/byte_kernels.h"

namespace valora::kernels {
namespace {

// Tile registers.
constexpr int kSums = 0, kInputs = 1, kWeights = 2;
constexpr int64_t kTileInputs = kTileRowBytes;

void configure() {
  TileConfig config;
  for (const int tile : {kSums, kInputs, kWeights}) config.set(tile, kTileRows);
  configure_tiles(config);
}

// A chunk's weights in bytes, as a tile register has them.
template <int BITS>
inline __attribute__((always_inline)) void decode_chunk(const uint8_t* chunk, uint8_t* bytes) {
  _mm512_store_si512(bytes, VnniBytes::weights<BITS, 0>(chunk));
  _mm512_store_si512(bytes + kTileRowBytes, VnniBytes::weights<BITS, 1>(chunk));
}

// Adds the products of 64 inputs from `input` on.
template <int BITS>
inline __attribute__((always_inline)) void step(const ByteProduct& p, const IntegerPlace& place,
                                                int64_t input) {
  const uint8_t* chunks =
      place.chunks[0] + input / kChunkInputs * IntegerSource<VnniBytes, BITS>::kChunkBytes;
  load_tile<kInputs>(p.rows.x + place.row * p.rows.ldx + input, p.rows.ldx);
  if constexpr (BITS == 8) {
    load_tile<kWeights>(chunks, kTileRowBytes);
  } else {
    alignas(64) uint8_t bytes[kTileInputs * kPanelOutputs];
    for (int c = 0; c < kTileInputs / kChunkInputs; ++c)
      decode_chunk<BITS>(chunks + c * IntegerSource<VnniBytes, BITS>::kChunkBytes,
                         bytes + c * kChunkInputs * kPanelOutputs);
    load_tile<kWeights>(bytes, kTileRowBytes);
  }
  multiply_bytes<kSums, kInputs, kWeights>();
}

// The same for fewer inputs, at the end of k: padded with zeros.
template <int BITS>
void last_step(const ByteProduct& p, const IntegerPlace& place, int64_t input) {
  alignas(64) uint8_t rows[kTileRows][kTileRowBytes] = {}, bytes[kTileInputs * kPanelOutputs] = {};
  const int64_t first = input / kChunkInputs, chunks = chunks_of(p.w) - first;
  for (int r = 0; r < kTileRows; ++r)
    __builtin_memcpy(rows[r], p.rows.x + (place.row + r) * p.rows.ldx + input,
                     chunks * kChunkInputs);
  for (int64_t c = 0; c < chunks; ++c)
    decode_chunk<BITS>(place.chunks[0] + (first + c) * IntegerSource<VnniBytes, BITS>::kChunkBytes,
                       bytes + c * kChunkInputs * kPanelOutputs);
  load_tile<kInputs>(rows, kTileRowBytes);
  load_tile<kWeights>(bytes, kTileRowBytes);
  multiply_bytes<kSums, kInputs, kWeights>();
}

// PLAIN: as of add_span.
template <int BITS, bool PLAIN>
void byte_block(const ByteProduct& p, const IntegerPlace& place) {
  const int64_t all = inputs_of_chunks(p.w), group = group_chunks_of(p) * kChunkInputs;
  __m512 totals[kTileRows][1];
  for (auto& total : totals) total[0] = VnniBytes::zero();
  for (int64_t span = 0, begin = 0; begin < all; ++span) {
    const int64_t end = std::min(all, begin + p.rows.span);
    clear_tile<kSums>();
    int64_t i = begin;
    for (; i + kTileInputs <= end; i += kTileInputs) step<BITS>(p, place, i);
    if (i < end) last_step<BITS>(p, place, i);
    alignas(64) int32_t sums[kTileRows][kPanelOutputs];
    store_tile<kSums>(sums, kTileRowBytes);
    __m512i ints[kTileRows][1];
    start_span<VnniBytes, BITS>(p, place, span, ints);
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r)
      ints[r][0] = _mm512_add_epi32(ints[r][0], _mm512_load_si512(sums[r]));
    add_span<VnniBytes, BITS, true, PLAIN>(p, place, span, begin / group, ints, totals);
    begin = end;
  }
  store_totals<VnniBytes>(p, place, totals);
}

// The last block of rows begins earlier if they do not fill it: some are computed twice, and alike.
template <int BITS>
void multiply_tiles(const ByteProduct& p) {
  configure();
  const bool plain = !p.w.zeros && !p.w.minimums && !p.w.float_scales;
  IntegerPlace place{};
  for (place.panel = p.panel_begin; place.panel < p.panel_end; ++place.panel) {
    place.chunks[0] = p.w.data + place.panel * p.w.panel_bytes;
    for (int64_t row = 0; row < p.m; row += kTileRows) {
      place.row = std::min(row, p.m - kTileRows);
      plain ? byte_block<BITS, true>(p, place) : byte_block<BITS, false>(p, place);
    }
  }
  release_tiles();
}

}  // namespace

// Scaling the sums of shorter spans takes longer than their products, whichever instructions
// compute these.
void multiply_bytes_amx(const ByteProduct& p) {
  const bool whole_tiles = p.rows.span >= p.w.k || p.rows.span % kTileInputs == 0;
  if (p.m < kTileRows || !whole_tiles) return multiply_bytes_vnni(p);
  with_bits(p.w.bits, [&](auto bits) { multiply_tiles<bits>(p); });
}

}  // namespace valora::kernels

#endif
