#include "kernels/cuda/elementwise.h"

#include "ops/device/cuda_types.h"
#include "ops/elementwise/elementwise_targets.h"

namespace valora::ops {

at::Tensor rms_norm_cuda(const at::Tensor& x, const at::Tensor& weight, double eps, double offset) {
  at::Tensor y = at::empty(x.sizes(), x.options());
  const bool together = x.is_contiguous();  // then all rows can be passed as heads of one token
  const int64_t width = x.size(-1), rows = x.numel() / width;
  const int64_t heads = together ? 1 : x.size(1);
  const kernels::cuda::Heads rows_of{x.data_ptr(), together ? width : x.stride(0),
                                     static_cast<int32_t>(heads)};
  check_launch(
      kernels::cuda::rms_norm(cuda_dtype(x.scalar_type()), rows_of, weight.const_data_ptr(),
                              static_cast<float>(offset), y.data_ptr(), rows / heads,
                              static_cast<int32_t>(width), static_cast<float>(eps), stream_of(x)),
      "rms_norm");
  return y;
}

at::Tensor add_rms_norm_cuda(at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                             double eps, double offset) {
  at::Tensor y = at::empty_like(x);
  check_launch(kernels::cuda::add_rms_norm(
                   cuda_dtype(x.scalar_type()), x.data_ptr(), residual.const_data_ptr(),
                   weight.const_data_ptr(), static_cast<float>(offset), y.data_ptr(), x.size(0),
                   static_cast<int32_t>(x.size(1)), static_cast<float>(eps), stream_of(x)),
               "add_rms_norm");
  return y;
}

at::Tensor quick_gelu_cuda(const at::Tensor& x) {
  at::Tensor y = at::empty_like(x);
  check_launch(kernels::cuda::quick_gelu(cuda_dtype(x.scalar_type()), x.const_data_ptr(),
                                         y.data_ptr(), x.numel(), stream_of(x)),
               "quick_gelu");
  return y;
}

void rotate_half_cuda(at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const kernels::cuda::Heads heads{x.data_ptr(), x.stride(0), static_cast<int32_t>(x.size(1))};
  check_launch(kernels::cuda::rotate_half(cuda_dtype(x.scalar_type()), heads,
                                          cos.const_data_ptr<float>(), sin.const_data_ptr<float>(),
                                          x.size(0), static_cast<int32_t>(x.size(2)),
                                          static_cast<int32_t>(2 * cos.size(1)), stream_of(x)),
               "rotate_half");
}

}  // namespace valora::ops
