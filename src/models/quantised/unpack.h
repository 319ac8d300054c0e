// Unpacks 4-bit or 8-bit integers from 32-bit words, lowest bits first.
#pragma once

#include <ATen/ATen.h>

namespace valora::models {

// words: int32 [rows, ceil(width / n)], n = 32 / bits → uint8 [rows, width]
at::Tensor unpack_along_columns(const at::Tensor& words, int bits, int64_t width);
// words: int32 [ceil(height / n), columns] → uint8 [height, columns]
at::Tensor unpack_along_rows(const at::Tensor& words, int bits, int64_t height);

}  // namespace valora::models
