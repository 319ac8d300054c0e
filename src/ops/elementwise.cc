#include "ops/elementwise.h"

#include "kernels/cpu/elementwise/elementwise.h"
#include "ops/cpu_dispatch.h"
#include "ops/gradient.h"
#include "ops/parallel.h"

namespace valora::ops {
namespace {

void check_rows(const at::Tensor& x, const at::Tensor& weight) {
  TORCH_CHECK(x.dim() == 2 && x.is_contiguous() && weight.dim() == 1 &&
                  weight.size(0) == x.size(1) && weight.scalar_type() == x.scalar_type(),
              "rms_norm: x is ", x.sizes(), " ", x.scalar_type(), ", the weight ", weight.sizes(),
              " ", weight.scalar_type());
}

at::Tensor rms_norm_cpu(const at::Tensor& x, const at::Tensor* residual, const at::Tensor& weight,
                        double eps) {
  at::Tensor y = at::empty_like(x);
  dispatch_cpu(x, [&](auto t) {
    using T = decltype(t);
    kernels::rms_norm<T>(raw<T>(x), residual ? raw<T>(*residual) : nullptr, raw<T>(weight),
                         static_cast<float>(eps), x.size(0), x.size(1), raw<T>(y),
                         torch_parallel());
  });
  return y;
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  check_rows(x, weight);
  if (on_cpu_kernel(x) && !wants_gradient(x)) return rms_norm_cpu(x, nullptr, weight, eps);
  const at::Tensor wide = x.to(at::kFloat);
  return (wide * at::rsqrt(wide.pow(2).mean(-1, true) + eps) * weight.to(at::kFloat))
      .to(x.scalar_type());
}

at::Tensor add_rms_norm(at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                        double eps) {
  check_rows(x, weight);
  TORCH_CHECK(residual.sizes() == x.sizes() && residual.is_contiguous(),
              "add_rms_norm: residual is ", residual.sizes());
  const bool differentiates = wants_gradient(x) || wants_gradient(residual);
  if (on_cpu_kernel(x) && !differentiates) return rms_norm_cpu(x, &residual, weight, eps);
  if (differentiates)
    x = x + residual;
  else
    x.add_(residual);
  return rms_norm(x, weight, eps);
}

at::Tensor quick_gelu(const at::Tensor& x) {
  TORCH_CHECK(x.is_contiguous(), "quick_gelu: x must be contiguous");
  if (!on_cpu_kernel(x) || wants_gradient(x)) return x * at::sigmoid(1.702 * x);
  at::Tensor y = at::empty_like(x);
  dispatch_cpu(x, [&](auto t) {
    using T = decltype(t);
    kernels::quick_gelu<T>(raw<T>(x), x.numel(), raw<T>(y), torch_parallel());
  });
  return y;
}

void rotate_half(at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  TORCH_CHECK(x.dim() == 3 && heads_side_by_side(x) && x.size(2) % 2 == 0, "rotate_half: x is ",
              x.sizes());
  TORCH_CHECK(cos.sizes() == sin.sizes() && cos.dim() == 2 && cos.size(0) == x.size(0) &&
                  cos.size(1) == x.size(2) / 2 && cos.is_contiguous() && sin.is_contiguous() &&
                  cos.scalar_type() == at::kFloat,
              "rotate_half: cos is ", cos.sizes(), ", x ", x.sizes());
  const bool differentiates = wants_gradient(x);
  if (on_cpu_kernel(x) && !differentiates) {
    dispatch_cpu(x, [&](auto t) {
      using T = decltype(t);
      kernels::rotate_half<T>(raw<T>(x), x.size(0), x.stride(0), x.size(1), x.size(2),
                              cos.const_data_ptr<float>(), sin.const_data_ptr<float>(),
                              torch_parallel());
    });
    return;
  }
  const at::Tensor wide = x.to(at::kFloat), c = cos.unsqueeze(1), s = sin.unsqueeze(1);
  const auto halves = wide.chunk(2, -1);
  const at::Tensor turned =
      at::cat({halves[0] * c - halves[1] * s, halves[1] * c + halves[0] * s}, -1);
  if (differentiates)
    x = turned.to(x.scalar_type());
  else
    x.copy_(turned);
}

}  // namespace valora::ops
