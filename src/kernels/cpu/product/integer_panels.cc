#include "kernels/cpu/product/integer_panels.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/types/packed.h"

namespace valora::kernels {
namespace {

int64_t groups_of(const IntegerPanels& p) { return (p.k + p.group - 1) / p.group; }

// The byte offset of an output's word of a chunk. input: of the chunk.
template <int BITS>
int64_t word_at(int64_t output, int64_t input) {
  return (input / Packed<BITS>::kWordInputs * kPanelOutputs + output) * 4;
}

// Packs one chunk of one output. values: [kChunkInputs].
template <int BITS>
void pack_chunk(const uint8_t* values, int64_t output, uint8_t* chunk) {
  constexpr int64_t kWordInputs = Packed<BITS>::kWordInputs;
  for (int64_t first = 0; first < kChunkInputs; first += kWordInputs) {
    uint32_t word = 0;
    for (int64_t i = 0; i < kWordInputs; ++i)
      word |= uint32_t{values[first + i]} << Packed<BITS>::shift(i);
    std::memcpy(chunk + word_at<BITS>(output, first), &word, sizeof word);
  }
}

template <int BITS>
int integer_at(const uint8_t* chunk, int64_t output, int64_t input) {
  uint32_t word;
  std::memcpy(&word, chunk + word_at<BITS>(output, input), sizeof word);
  return static_cast<int>(unpacked<BITS>(word, input % Packed<BITS>::kWordInputs));
}

void pack_group_parts(const IntegerPanels& p, const GroupParts& parts, int64_t row, int64_t output,
                      uint8_t* panel) {
  const int64_t groups = groups_of(p);
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t at = g * kPanelOutputs + output, from = row * groups + g;
    if (p.float_scales) {
      std::memcpy(panel + p.scales_at + 4 * at, parts.scales + from, 4);
    } else {
      const bf16 scale = from_float<bf16>(parts.scales[from]);
      std::memcpy(panel + p.scales_at + 2 * at, &scale, 2);
    }
    if (p.zeros) panel[p.zeros_at + at] = parts.zeros[from];
    if (p.minimums) std::memcpy(panel + p.zeros_at + 4 * at, parts.minimums + from, 4);
  }
}

}  // namespace

IntegerPanels integer_layout(int64_t n, int64_t k, int bits, int64_t group, bool float_scales,
                             bool zeros, bool minimums) {
  IntegerPanels p;
  p.n = n;
  p.k = k;
  p.group = std::min(group, std::max<int64_t>(k, 1));
  p.bits = bits;
  p.float_scales = float_scales;
  p.zeros = zeros;
  p.minimums = minimums;
  constexpr int64_t kLine = 64;
  const int64_t parts = groups_of(p) * kPanelOutputs;
  p.scales_at = inputs_of_chunks(p) * kPanelOutputs * bits_of(bits) / 8;
  p.zeros_at = p.scales_at + parts * (float_scales ? 4 : 2);
  const int64_t offsets = minimums ? 4 * parts : zeros ? parts : 0;
  p.panel_bytes = (p.zeros_at + offsets + kLine - 1) / kLine * kLine;
  return p;
}

int64_t integer_bytes(const IntegerPanels& layout) {
  return panels_of(layout.n) * layout.panel_bytes;
}

bool fit_bf16(const float* scales, int64_t count) {
  return std::all_of(scales, scales + count,
                     [](float scale) { return (std::bit_cast<uint32_t>(scale) & 0xffffu) == 0; });
}

void pack_integers(const IntegerPanels& p, const uint8_t* values, const GroupParts& parts,
                   uint8_t* panels, const ParallelFor& parallel) {
  const auto middle = static_cast<uint8_t>(middle_of(p.bits));
  const int64_t chunk_bytes = kChunkInputs * kPanelOutputs * bits_of(p.bits) / 8;
  parallel(0, panels_of(p.n), std::max<int64_t>(1, 65536 / std::max<int64_t>(1, p.panel_bytes)),
           [&](int64_t begin, int64_t end) {
             for (int64_t index = begin; index < end; ++index) {
               uint8_t* panel = panels + index * p.panel_bytes;
               std::memset(panel, 0, static_cast<size_t>(p.panel_bytes));
               for (int64_t j = 0; j < kPanelOutputs; ++j) {
                 const int64_t row = index * kPanelOutputs + j;
                 for (int64_t c = 0; c < chunks_of(p); ++c) {
                   uint8_t chunk[kChunkInputs];
                   std::memset(chunk, middle, sizeof chunk);
                   if (row < p.n)
                     std::copy_n(values + row * p.k + c * kChunkInputs,
                                 std::min(kChunkInputs, p.k - c * kChunkInputs), chunk);
                   with_bits(p.bits, [&](auto bits) {
                     pack_chunk<bits>(chunk, j, panel + c * chunk_bytes);
                   });
                 }
                 if (row < p.n) pack_group_parts(p, parts, row, j, panel);
               }
             }
           });
}

void decode_integers(const IntegerPanels& p, float* w, const ParallelFor& parallel) {
  const int64_t chunk_bytes = kChunkInputs * kPanelOutputs * bits_of(p.bits) / 8;
  parallel(0, p.n, std::max<int64_t>(1, 65536 / std::max<int64_t>(1, p.k)),
           [&](int64_t begin, int64_t end) {
             for (int64_t row = begin; row < end; ++row) {
               const uint8_t* panel = p.data + row / kPanelOutputs * p.panel_bytes;
               const int64_t output = row % kPanelOutputs;
               for (int64_t i = 0; i < p.k; ++i) {
                 const int64_t part = i / p.group * kPanelOutputs + output;
                 float scale;
                 if (p.float_scales) {
                   std::memcpy(&scale, panel + p.scales_at + 4 * part, 4);
                 } else {
                   bf16 half;
                   std::memcpy(&half, panel + p.scales_at + 2 * part, 2);
                   scale = to_float(half);
                 }
                 const int zero = p.zeros ? panel[p.zeros_at + part] : usual_zero(p);
                 float minimum = 0;
                 if (p.minimums) std::memcpy(&minimum, panel + p.zeros_at + 4 * part, 4);
                 const uint8_t* chunk = panel + i / kChunkInputs * chunk_bytes;
                 const int value = with_bits(p.bits, [&](auto bits) {
                   return integer_at<bits>(chunk, output, i % kChunkInputs);
                 });
                 w[row * p.k + i] = static_cast<float>(value - zero) * scale + minimum;
               }
             }
           });
}

}  // namespace valora::kernels
