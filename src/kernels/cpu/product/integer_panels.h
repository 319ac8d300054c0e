// The layout of weights in integers of 8 or 4 bits. Kernels decode them while they multiply; their
// memory is never that of floats.
//
// An [n, k] matrix with w[o][i] = (values[o][i] - zeros[o][g]) · scales[o][g], g = i / group, or
// w[o][i] = values[o][i] · scales[o][g] + minimums[o][g], is cut into panels of 16 outputs, as in
// panels.h. A panel has three parts:
//   the integers, in chunks of 8 inputs × 16 outputs, padded with the middle of the range:
//     8 bits: [8 inputs][16 outputs] signed bytes, value - 128
//     4 bits: [16 outputs] words of 32 bits. Input 2s is in bits 4s to 4s + 3, input 2s + 1 in
//             bits 16 + 4s to 19 + 4s: a shift by 4s brings a pair of inputs to the low ends of the
//             halves of a word, where one look-up makes a pair of bf16 of them.
//   the scales [groups][16]: bf16 if that has all of them exactly, else fp32
//   the zero-points [groups][16] in bytes, unless all are the middle: 1 << (bits - 1), or the
//   minimums [groups][16] in fp32
// and is padded to 64 bytes. A group is a multiple of 8 inputs, or all of k.
#pragma once

#include <cstdint>

#include "base/parallel.h"
#include "kernels/cpu/product/panels.h"

namespace valora::kernels {

inline constexpr int64_t kChunkInputs = 8;

struct IntegerPanels {
  const uint8_t* data = nullptr;
  int64_t n = 0;      // outputs
  int64_t k = 0;      // inputs
  int64_t group = 0;  // inputs per group
  int bits = 8;       // 4 or 8
  bool float_scales = false;
  bool zeros = false;     // whether zero-points are stored
  bool minimums = false;  // whether minimums are, instead of zero-points
  // Inputs per scale of x, which products then round to 8 bits (byte_product.h): a multiple of 8,
  // or all. 0: x stays as it is.
  int64_t input_block = 0;
  // Of a panel, in bytes. zeros_at: of the zero-points or minimums.
  int64_t scales_at = 0, zeros_at = 0, panel_bytes = 0;
};

// Whether the layout has groups of this size.
constexpr bool is_integer_group(int64_t group, int64_t k) {
  return group > 0 && (group % kChunkInputs == 0 || group >= k);
}

// The layout of a matrix, without data. is_integer_group(group, k) must hold.
IntegerPanels integer_layout(int64_t n, int64_t k, int bits, int64_t group, bool float_scales,
                             bool zeros, bool minimums = false);
int64_t integer_bytes(const IntegerPanels& layout);

// Whether bf16 has all scales exactly.
bool fit_bf16(const float* scales, int64_t count);

// What the layout stores of each group, [n, groups], row-major. Of zeros and minimums, what it does
// not store may be null.
struct GroupParts {
  const float* scales = nullptr;
  const uint8_t* zeros = nullptr;
  const float* minimums = nullptr;
};
// Writes integer_bytes(p) bytes. values: [n, k], row-major.
void pack_integers(const IntegerPanels& p, const uint8_t* values, const GroupParts& parts,
                   uint8_t* panels, const ParallelFor& parallel);
// The weights in fp32, [n, k] row-major.
void decode_integers(const IntegerPanels& p, float* w, const ParallelFor& parallel);

}  // namespace valora::kernels
