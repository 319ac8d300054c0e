// The operations between products. Row-wise, fp32 inside, rounded once. They differentiate; what is
// done in place elsewhere makes a new tensor of x where gradients are wanted.
#pragma once

#include <ATen/ATen.h>

namespace valora::ops {

// x: [T, width] → x / rms(x) · weight.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);
// x += residual in place, then as rms_norm: the step between two blocks of a decoder.
at::Tensor add_rms_norm(at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                        double eps);
// x · sigmoid(1.702 · x): CLIP's and Qwen2-VL's activation.
at::Tensor quick_gelu(const at::Tensor& x);
// In place on x: [T, heads, dim], heads side by side in a row; cos, sin: float [T, dim / 2].
// Rotates the halves (GPT-NeoX order).
void rotate_half(at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace valora::ops
