// Reads and multiplies matrices of adapters that may be in several pieces: embeddings and output
// layers. A matrix [.., width] is a DeviceLoraFactor whose pieces are 16-byte aligned.
#pragma once

#include "kernels/cuda/lora.h"

namespace valora::kernels::cuda {

// out[i] = row rows[i] of the matrix. out: [count, width], contiguous and 16-byte aligned.
Status gather_rows(Dtype dtype, const DeviceLoraFactor& matrix, int32_t width, const int64_t* rows,
                   int64_t count, void* out, Stream stream);

// y[t, i] = row first_row + i of the matrix · x[t], added to y[t, i] if `adds`. Summed in fp32.
struct RowProduct {
  Dtype dtype = Dtype::kBf16;  // of the matrix
  DeviceLoraFactor matrix;
  int32_t width = 0;
  int64_t first_row = 0;
  int32_t rows = 0;
  const float* x = nullptr;  // [tokens, width], contiguous
  int32_t tokens = 0;
  float* y = nullptr;  // [tokens, rows]
  int64_t y_stride = 0;
  bool adds = false;
};
// Meant for few tokens: each four of them read the matrix once.
Status row_product(const RowProduct& product, Stream stream);

}  // namespace valora::kernels::cuda
