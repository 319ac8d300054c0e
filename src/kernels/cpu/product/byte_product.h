// Products whose inputs are rounded to 8 bits too: the sums of integers are exact, and each span of
// inputs costs two multiply-adds per output for the scales. Weights are those of integer_panels.h.
//
//   x[i] ≈ q[i] · scale of its block        q = -127 … 127, scale = the block's largest / 127
//   y[o] = Σ over spans: (Σ q · value − zero · Σ q) · scale of x · scale of w
//                        (minimums instead of zero-points: + minimum · Σ q · scale of x)
//
// A span is a run of inputs that share both scales.
#pragma once

#include <cstdint>

#include "kernels/cpu/product/integer_product.h"

namespace valora::kernels {

// The rows of x in 8 bits.
struct ByteRows {
  // [m, chunks of 8 inputs], ldx bytes per row, padded with zeros. Inputs take input_bytes bytes.
  // For weights of 4 bits the inputs of a chunk are stored in the order 0 4 1 5 2 6 3 7, in which a
  // panel's words have their bytes once they are masked.
  const uint8_t* x = nullptr;
  int64_t ldx = 0;
  const float* scales = nullptr;  // [m, spans]
  const float* sums = nullptr;    // Σ q, [m, spans]
  int64_t spans = 0;
  int64_t span = 0;  // inputs: a multiple of 8
};

struct ByteProduct : IntegerOutputs {
  ByteRows rows;
};

// The kernels of one instruction set.
struct ByteKernels {
  void (*multiply)(const ByteProduct& product);
  int64_t most_span[2];  // inputs per span, for weights of 4 and 8 bits
  int input_bytes[2];    // for weights of 4 and 8 bits
};

extern const ByteKernels kVnniByteKernels;
extern const ByteKernels kAvx2ByteKernels;
extern const ByteKernels kPortableByteKernels;

// The best ones within isa().
const ByteKernels& byte_kernels();

// How the inputs of a product are rounded and stored.
struct ByteForm {
  int64_t k = 0;
  int64_t block = 0;  // inputs per scale
  int64_t span = 0;
  int bits = 8;         // of the weights
  int input_bytes = 1;  // 1 or 2

  int64_t chunks() const { return (k + kChunkInputs - 1) / kChunkInputs; }
  int64_t row_bytes() const { return chunks() * kChunkInputs * input_bytes; }
  int64_t spans() const { return (k + span - 1) / span; }
  bool operator==(const ByteForm&) const = default;
};

// w.input_block must be set.
ByteForm byte_form(const IntegerPanels& w, const ByteKernels& kernels);

// The block to choose for weights in groups of `group` inputs: the group, or a part of it, of at
// most 128.
int64_t input_block(int64_t group, int64_t k);

// Rounds rows of x, [m, form.k], to nearest even. values: [m, row_bytes()], scales and sums:
// [m, spans()]. A block with a NaN or an infinity has that as its scale, so that all its products
// are NaN. T is float or bf16.
template <typename T>
void round_rows_to_bytes(const T* x, int64_t m, int64_t ldx, const ByteForm& form, uint8_t* values,
                         float* scales, float* sums);

}  // namespace valora::kernels
