// Products with inputs rounded to 8 bits as well: integer sums are exact, and each span of inputs
// costs two multiply-adds per output for the scales. Weights are as in integer_panels.h.
//
//   x[i] ≈ q[i] · scale of its block        q = -127 … 127, scale = the block's largest / 127,
//                                           or as RowRounding specifies
//   y[o] = Σ over spans: (Σ q · value − zero · Σ q) · scale of x · scale of w
//                        (minimums instead of zero-points: + minimum · Σ q · scale of x)
//
// A span is a run of inputs that share both scales.
#pragma once

#include <cstdint>

#include "kernels/cpu/product/integer_product.h"

namespace valora::kernels {

// The rows of x rounded to 8 bits.
struct ByteRows {
  // [m, chunks of 8 inputs], ldx bytes per row, padded with zeros. Each input takes input_bytes
  // bytes. The order of a chunk's inputs is that in which kernels widen the integers of a panel's
  // words: 0 4 1 5 2 6 3 7 for 4-bit weights, 0 2 1 3 4 6 5 7 for inputs of 2 bytes.
  const uint8_t* x = nullptr;
  int64_t ldx = 0;
  const float* scales = nullptr;    // [m, spans]
  const float* sums = nullptr;      // Σ q, [m, spans]
  const int32_t* starts = nullptr;  // ByteForm::start · Σ q, [m, spans]
  int64_t spans = 0;
  int64_t span = 0;         // inputs per span: a multiple of 8
  int64_t block_spans = 1;  // spans that share a scale
};

struct ByteProduct : IntegerOutputs {
  ByteRows rows;
};

// The kernels of one instruction set.
struct ByteKernels {
  void (*multiply)(const ByteProduct& product);
  PerBits<int64_t> most_span;  // inputs per span, by the bits of the weights
  PerBits<int> input_bytes;
  bool starts;  // sums of integers can start at ByteRows::starts
};

// The best kernels that isa() allows.
const ByteKernels& byte_kernels();

// How the inputs of a product are rounded and stored.
struct ByteForm {
  int64_t k = 0;
  int64_t block = 0;  // inputs per scale
  int64_t span = 0;
  int bits = 8;         // of the weights
  int input_bytes = 1;  // 1 or 2
  int start = 0;        // minus the zero-point that all weights share, if sums start with it
  std::optional<RowRounding> row_rounding = {};

  int64_t chunks() const { return (k + kChunkInputs - 1) / kChunkInputs; }
  int64_t row_bytes() const { return chunks() * kChunkInputs * input_bytes; }
  int64_t spans() const { return (k + span - 1) / span; }
  int64_t block_spans() const { return (block + span - 1) / span; }
  bool operator==(const ByteForm&) const = default;
};

// w.input_block must be set.
ByteForm byte_form(const IntegerPanels& w, const ByteKernels& kernels);

// The recommended block for weights in groups of `group` inputs: as many whole groups as fit in 128
// inputs, or the largest part of at most 128 inputs that divides a longer group.
int64_t input_block(int64_t group, int64_t k);

// Rows of x rounded to 8 bits, as they are written: the arrays of ByteRows.
struct RoundedRows {
  uint8_t* values;  // [m, row_bytes()]
  float* scales;    // [m, spans()]
  float* sums;      // [m, spans()]
  int32_t* starts;  // [m, spans()]

  // Those from `row` on.
  RoundedRows from(int64_t row, const ByteForm& form) const {
    const int64_t at = row * form.spans();
    return {values + row * form.row_bytes(), scales + at, sums + at, starts + at};
  }
};

// Rounds rows of x, [m, form.k], to nearest even. The scale of a block that contains a NaN or
// infinity is not finite, so that all its products are NaN; with RowRounding of a fixed scale,
// infinities saturate. largest: for RowRounding if x holds only part of each row's inputs, the
// largest magnitude of each whole row, [m]. T is float or bf16.
template <typename T>
void round_rows_to_bytes(const T* x, int64_t m, int64_t ldx, const ByteForm& form,
                         const RoundedRows& rows, const float* largest = nullptr);

}  // namespace valora::kernels
