// Elementwise and row-wise operations, computed in fp32 and rounded once. All are differentiable:
// when gradients are recorded, in-place operations assign a new tensor to x instead. Invalid
// arguments throw c10::Error.
#pragma once

#include <ATen/ATen.h>

namespace valora::ops {

// x: [..., width], contiguous, or on GPUs [T, heads, width] with contiguous heads; weight: [width]
// → x / sqrt(mean(x²) + eps) · (weight + offset), contiguous. On GPUs, the offset must be 0.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, double offset = 0);
// x += residual in place, then rms_norm(x); used between the blocks of a decoder.
at::Tensor add_rms_norm(at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                        double eps, double offset = 0);
// x · sigmoid(1.702 · x), the activation of CLIP and Qwen2-VL.
at::Tensor quick_gelu(const at::Tensor& x);
// The rotary angles of a step's tokens: float [T, rotated / 2], contiguous.
struct RotaryAngles {
  at::Tensor cos, sin;
};
// Rotary embedding in place, in GPT-NeoX order: rotates the two halves of the first `rotated`
// elements of each head. x: [T, heads, dim], on GPUs with contiguous heads per row; cos, sin: float
// [T, rotated / 2].
void rotate_half(at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace valora::ops
