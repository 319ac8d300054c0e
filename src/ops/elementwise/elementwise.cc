#include "ops/elementwise/elementwise.h"

#include "ops/attention/heads.h"
#include "ops/device/dispatch.h"
#include "ops/elementwise/elementwise_targets.h"
#include "ops/elementwise/gradient.h"

namespace valora::ops {
namespace {

void check_norm(const at::Tensor& x, const at::Tensor& weight) {
  TORCH_CHECK(weight.dim() == 1 && x.dim() > 1 && weight.size(0) == x.size(-1) &&
                  weight.scalar_type() == x.scalar_type(),
              "rms_norm: x is ", x.sizes(), " ", x.scalar_type(), ", the weight ", weight.sizes(),
              " ", weight.scalar_type());
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, double offset) {
  check_norm(x, weight);
  const Target target = target_of(x, wants_gradient(x));
  TORCH_CHECK(x.is_contiguous() || (target == Target::kCuda && has_contiguous_heads(x)),
              "rms_norm: x must be contiguous");
  switch (target) {
    case Target::kCpu: return rms_norm_cpu(x, weight, eps, offset);
    case Target::kCuda: return rms_norm_cuda(x, weight, eps, offset);
    case Target::kAten: break;
  }
  return rms_norm_aten(x, weight, eps, offset);
}

at::Tensor add_rms_norm(at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                        double eps, double offset) {
  check_norm(x, weight);
  TORCH_CHECK(x.dim() == 2 && x.is_contiguous(), "add_rms_norm: x is ", x.sizes());
  TORCH_CHECK(residual.sizes() == x.sizes() && residual.is_contiguous(),
              "add_rms_norm: residual is ", residual.sizes());
  switch (target_of(x, wants_gradient(x) || wants_gradient(residual))) {
    case Target::kCpu: return add_rms_norm_cpu(x, residual, weight, eps, offset);
    case Target::kCuda: return add_rms_norm_cuda(x, residual, weight, eps, offset);
    case Target::kAten: break;
  }
  return add_rms_norm_aten(x, residual, weight, eps, offset);
}

at::Tensor quick_gelu(const at::Tensor& x) {
  TORCH_CHECK(x.is_contiguous(), "quick_gelu: x must be contiguous");
  switch (target_of(x, wants_gradient(x))) {
    case Target::kCpu: return quick_gelu_cpu(x);
    case Target::kCuda: return quick_gelu_cuda(x);
    case Target::kAten: break;
  }
  return quick_gelu_aten(x);
}

void check_rotary(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  TORCH_CHECK(x.dim() == 3 && x.stride(2) == 1 && x.size(2) % 2 == 0 &&
                  (x.is_cpu() || has_contiguous_heads(x)),
              "rotate_half: x is ", x.sizes());
  TORCH_CHECK(cos.sizes() == sin.sizes() && cos.dim() == 2 && cos.size(0) == x.size(0) &&
                  2 * cos.size(1) <= x.size(2) && cos.is_contiguous() && sin.is_contiguous() &&
                  cos.scalar_type() == at::kFloat,
              "rotate_half: cos is ", cos.sizes(), ", x ", x.sizes());
}

void rotate_half(at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  check_rotary(x, cos, sin);
  const bool differentiates = wants_gradient(x);
  const Target target = target_of(x, differentiates);
  if (target == Target::kCuda) return rotate_half_cuda(x, cos, sin);
  const int64_t rotated = 2 * cos.size(1), rest = x.size(2) - rotated;
  at::Tensor part = x.narrow(2, 0, rotated);
  if (target == Target::kCpu) return rotate_half_cpu(part, cos, sin);
  rotate_half_aten(part, cos, sin);
  if (differentiates) x = rest == 0 ? part : at::cat({part, x.narrow(2, rotated, rest)}, 2);
}

}  // namespace valora::ops
