// The implementations of ops/elementwise/elementwise.h. The caller has checked the arguments. The
// ATen ones are differentiable.
#pragma once

#include <ATen/ATen.h>

namespace valora::ops {

// Throws c10::Error unless x and the angles meet the requirements of rotate_half().
void check_rotary(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

at::Tensor rms_norm_cpu(const at::Tensor& x, const at::Tensor& weight, double eps, double offset);
at::Tensor add_rms_norm_cpu(at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                            double eps, double offset);
at::Tensor quick_gelu_cpu(const at::Tensor& x);
void rotate_half_cpu(at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

at::Tensor rms_norm_cuda(const at::Tensor& x, const at::Tensor& weight, double eps, double offset);
at::Tensor add_rms_norm_cuda(at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                             double eps, double offset);
at::Tensor quick_gelu_cuda(const at::Tensor& x);
void rotate_half_cuda(at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

at::Tensor rms_norm_aten(const at::Tensor& x, const at::Tensor& weight, double eps, double offset);
at::Tensor add_rms_norm_aten(at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                             double eps, double offset);
at::Tensor quick_gelu_aten(const at::Tensor& x);
void rotate_half_aten(at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace valora::ops
