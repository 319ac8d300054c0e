#include "ops/elementwise/elementwise_targets.h"
#include "ops/elementwise/gradient.h"

namespace valora::ops {

at::Tensor rms_norm_aten(const at::Tensor& x, const at::Tensor& weight, double eps, double offset) {
  const at::Tensor wide = x.to(at::kFloat);
  return (wide * at::rsqrt(wide.pow(2).mean(-1, true) + eps) * (weight.to(at::kFloat) + offset))
      .to(x.scalar_type());
}

at::Tensor add_rms_norm_aten(at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                             double eps, double offset) {
  if (wants_gradient(x) || wants_gradient(residual))
    x = x + residual;
  else
    x.add_(residual);
  return rms_norm_aten(x, weight, eps, offset);
}

at::Tensor quick_gelu_aten(const at::Tensor& x) { return x * at::sigmoid(1.702 * x); }

void rotate_half_aten(at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const at::Tensor wide = x.to(at::kFloat), c = cos.unsqueeze(1), s = sin.unsqueeze(1);
  const auto halves = wide.chunk(2, -1);
  const at::Tensor turned =
      at::cat({halves[0] * c - halves[1] * s, halves[1] * c + halves[0] * s}, -1);
  if (wants_gradient(x))
    x = turned.to(x.scalar_type());
  else
    x.copy_(turned);
}

}  // namespace valora::ops
