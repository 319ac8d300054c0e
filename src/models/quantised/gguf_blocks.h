// Decodes GGUF tensors that are stored as rows of blocks.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/tensors/gguf.h"
#include "ops/weights/quantised_tensor.h"

namespace valora::models {

inline bool in_blocks(GgufType type) { return block_of(type).values > 1; }

// The integer format that holds a type's values.
struct BlockIntegers {
  ops::Quantisation form;
  bool float_scales = false;  // scales are fp32, because a super-block's scales are products
  bool minimums = false;
};
BlockIntegers integers_of_blocks(GgufType type);

// bytes: uint8 [rows, bytes of a row], contiguous, of a block type → exactly these values. Scales
// may be non-finite.
ops::QuantisedTensor read_blocks(GgufType type, const at::Tensor& bytes);
// As read_blocks(), but decoded to `dtype` and rounded once: [rows, values of a row].
at::Tensor decode_blocks(GgufType type, const at::Tensor& bytes, at::ScalarType dtype);

// The row order of queries and keys in transformers. Converters of Llama interleave the two halves
// of each head, which are rotated as pairs: row j of half t of a head is stored as row 2 j + t. →
// the stored row of each row.
at::Tensor rows_of_halves(int64_t rows, int64_t head);

}  // namespace valora::models
