// The layout of 8-bit or 4-bit integer weights. Kernels decode them while multiplying; the weights
// are never stored as floats.
//
// An [n, k] matrix with w[o][i] = (values[o][i] - zeros[o][g]) · scales[o][g], g = i / group, or
// w[o][i] = values[o][i] · scales[o][g] + minimums[o][g], is divided into panels of 16 outputs, as
// in panels.h. A panel has three parts:
//   the integers, in chunks of 8 inputs × 16 outputs, padded with the middle of the range:
//     8 bits: [2][16 outputs] words of 32 bits, first with inputs 0 to 3 as their bytes, then with
//             inputs 4 to 7: what vpdpbusd multiplies by four inputs
//     4 bits: [16 outputs] words of 32 bits. Input 2s is in bits 4s to 4s + 3, input 2s + 1 in
//             bits 16 + 4s to 19 + 4s: a shift by 4s brings a pair of inputs to the low ends of the
//             halves of a word, where one look-up makes a pair of bf16 of them.
//   the scales [groups][16]: bf16 if that has all of them exactly, else fp32
//   the zero-points [groups][16] in bytes, unless all are the middle: middle_of(bits), or the
//   minimums [groups][16] in fp32
// and is padded to 64 bytes. A group is a multiple of 8 inputs, or all of k.
#pragma once

#include <cstdint>
#include <optional>

#include "base/threads/parallel.h"
#include "kernels/cpu/product/panels.h"
#include "kernels/types/packed.h"

namespace valora::kernels {

inline constexpr int64_t kChunkInputs = 8;

// Inputs as integers from -128 to 127 with one scale per row.
struct RowRounding {
  float scale = 0;  // for all rows; 0: each row's largest magnitude / 127.5
  bool operator==(const RowRounding&) const = default;
};

struct IntegerPanels {
  const uint8_t* data = nullptr;
  int64_t n = 0;      // outputs
  int64_t k = 0;      // inputs
  int64_t group = 0;  // inputs per group
  int bits = 8;       // 4 or 8
  bool float_scales = false;
  bool zeros = false;     // zero-points are stored
  bool minimums = false;  // minimums are stored, instead of zero-points
  // Inputs per scale if products also round x to 8 bits (byte_product.h): a multiple of 8, or all
  // inputs. 0: x is not rounded.
  int64_t input_block = 0;
  // Set if a checkpoint specifies how inputs are rounded; input_block is then all inputs.
  std::optional<RowRounding> row_rounding = {};
  // In bytes, within a panel. zeros_at: zero-points or minimums.
  int64_t scales_at = 0, zeros_at = 0, panel_bytes = 0;
};

// The chunks of a panel, and their inputs with the padding.
constexpr int64_t chunks_of(const IntegerPanels& w) {
  return (w.k + kChunkInputs - 1) / kChunkInputs;
}
constexpr int64_t inputs_of_chunks(const IntegerPanels& w) { return chunks_of(w) * kChunkInputs; }

// The zero-point that applies if none are stored.
constexpr int usual_zero(const IntegerPanels& w) { return w.minimums ? 0 : middle_of(w.bits); }

// True if the layout supports groups of this size.
constexpr bool is_integer_group(int64_t group, int64_t k) {
  return group > 0 && (group % kChunkInputs == 0 || group >= k);
}

// The layout of a matrix, without its data. Requires is_integer_group(group, k).
IntegerPanels integer_layout(int64_t n, int64_t k, int bits, int64_t group, bool float_scales,
                             bool zeros, bool minimums = false);
int64_t integer_bytes(const IntegerPanels& layout);

// True if bf16 represents all scales exactly.
bool fit_bf16(const float* scales, int64_t count);

// The values stored per group, [n, groups], row-major. Zeros or minimums that the layout does not
// store may be null.
struct GroupParts {
  const float* scales = nullptr;
  const uint8_t* zeros = nullptr;
  const float* minimums = nullptr;
};
// Writes integer_bytes(p) bytes. values: [n, k], row-major.
void pack_integers(const IntegerPanels& p, const uint8_t* values, const GroupParts& parts,
                   uint8_t* panels, const ParallelFor& parallel);
// Decodes the weights to fp32, [n, k] row-major.
void decode_integers(const IntegerPanels& p, float* w, const ParallelFor& parallel);

}  // namespace valora::kernels
