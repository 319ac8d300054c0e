#include "kernels/cpu/elementwise/elementwise.h"
#include "ops/device/cpu_types.h"
#include "ops/device/parallel.h"
#include "ops/elementwise/elementwise_targets.h"

namespace valora::ops {
namespace {

at::Tensor norm(const at::Tensor& x, const at::Tensor* residual, const at::Tensor& weight,
                double eps, double offset) {
  at::Tensor y = at::empty_like(x);
  with_cpu_type(x, [&](auto t) {
    using T = decltype(t);
    kernels::rms_norm<T>(raw<T>(x), residual ? raw<T>(*residual) : nullptr, raw<T>(weight),
                         static_cast<float>(offset), static_cast<float>(eps),
                         x.numel() / x.size(-1), x.size(-1), raw<T>(y), torch_parallel());
  });
  return y;
}

}  // namespace

at::Tensor rms_norm_cpu(const at::Tensor& x, const at::Tensor& weight, double eps, double offset) {
  return norm(x, nullptr, weight, eps, offset);
}

at::Tensor add_rms_norm_cpu(at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                            double eps, double offset) {
  return norm(x, &residual, weight, eps, offset);
}

at::Tensor quick_gelu_cpu(const at::Tensor& x) {
  at::Tensor y = at::empty_like(x);
  with_cpu_type(x, [&](auto t) {
    using T = decltype(t);
    kernels::quick_gelu<T>(raw<T>(x), x.numel(), raw<T>(y), torch_parallel());
  });
  return y;
}

void rotate_half_cpu(at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  with_cpu_type(x, [&](auto t) {
    using T = decltype(t);
    kernels::rotate_half<T>(raw<T>(x), x.size(0), x.stride(0), x.size(1), x.stride(1), x.size(2),
                            cos.const_data_ptr<float>(), sin.const_data_ptr<float>(),
                            torch_parallel());
  });
}

}  // namespace valora::ops
