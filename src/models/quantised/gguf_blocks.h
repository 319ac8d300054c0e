// The values of tensors of GGUF files: rows of blocks.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/gguf.h"
#include "ops/quantise.h"
#include "ops/quantised_tensor.h"

namespace valora::models {

inline bool in_blocks(GgufType type) { return block_of(type).values > 1; }

// The integers that a type's values are kept as.
struct BlockIntegers {
  ops::Quantisation form;
  bool float_scales = false;  // of fp32, as scales of a super-block are products
  bool minimums = false;
};
BlockIntegers integers_of_blocks(GgufType type);

// bytes: uint8 [rows, bytes of a row], contiguous, of a type in blocks → exactly these values.
// Scales may be not finite.
ops::QuantisedTensor read_blocks(GgufType type, const at::Tensor& bytes);
// The same in `dtype`, rounded once: [rows, values of a row].
at::Tensor decode_blocks(GgufType type, const at::Tensor& bytes, at::ScalarType dtype);

// The rows of queries and keys as transformers has them. Converters of Llama interleave the two
// halves of each head, which its rotary positions turn together: row j of a half t of a head is
// their row 2 j + t. → the stored row of each row.
at::Tensor rows_of_halves(int64_t rows, int64_t head);

}  // namespace valora::models
