// The implementations behind ops/elementwise.h. Arguments are checked. Those on ATen differentiate.
#pragma once

#include <ATen/ATen.h>

namespace valora::ops {

at::Tensor rms_norm_cpu(const at::Tensor& x, const at::Tensor& weight, double eps);
at::Tensor add_rms_norm_cpu(at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                            double eps);
at::Tensor quick_gelu_cpu(const at::Tensor& x);
void rotate_half_cpu(at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

at::Tensor rms_norm_aten(const at::Tensor& x, const at::Tensor& weight, double eps);
at::Tensor add_rms_norm_aten(at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                             double eps);
at::Tensor quick_gelu_aten(const at::Tensor& x);
void rotate_half_aten(at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace valora::ops
