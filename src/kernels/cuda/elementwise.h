// Elementwise and row-wise operations (ops/elementwise/elementwise.h). They compute in fp32 and
// round once. Rows are contiguous unless a stride is given; strides are in elements. Accesses are
// 16 bytes wide where sizes, strides and addresses allow, but all values are supported.
#pragma once

#include "kernels/cuda/types.h"
#include "kernels/types/forms.h"

namespace valora::kernels::cuda {

// Heads of a step's tokens: [tokens, heads, dim], with contiguous heads per token.
struct Heads {
  void* data = nullptr;
  int64_t token_stride = 0;
  int32_t heads = 0;
};

// x: [tokens, heads, width], weight: [width] → out = x / sqrt(mean(x²) + eps) · (offset + weight),
// contiguous. x is not modified. out may equal x if x is contiguous.
Status rms_norm(Dtype dtype, Heads x, const void* weight, float offset, void* out, int64_t tokens,
                int32_t width, float eps, Stream stream);
// x += residual in place, rounded to the dtype, then out = rms_norm(x) of the rounded sum. x,
// residual, out: [rows, width].
Status add_rms_norm(Dtype dtype, void* x, const void* residual, const void* weight, float offset,
                    void* out, int64_t rows, int32_t width, float eps, Stream stream);

// out = x · sigmoid(1.702 · x). out may equal x.
Status quick_gelu(Dtype dtype, const void* x, void* out, int64_t count, Stream stream);
// out[rows, width] = activation(gate) · up. gate and up may be the halves of one [rows, 2 · width].
Status gate_mul(Gate activation, Dtype dtype, const void* gate, int64_t gate_stride, const void* up,
                int64_t up_stride, void* out, int64_t rows, int32_t width, Stream stream);

// Rotary embedding in place, GPT-NeoX order: rotates the two halves of the first `rotated` elements
// of each head. cos, sin: float [tokens, rotated / 2]. rotated: even, at most dim. For a decoder's
// queries and keys, see rotate_and_store() (attention.h).
Status rotate_half(Dtype dtype, Heads x, const float* cos, const float* sin, int64_t tokens,
                   int32_t dim, int32_t rotated, Stream stream);

}  // namespace valora::kernels::cuda
