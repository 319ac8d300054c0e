// Converts tensors to arguments of CUDA kernels, for the *_cuda.cc files. These include no CUDA
// header, so they compile with any libtorch.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "kernels/cuda/types.h"
#include "kernels/types/processor.h"

namespace valora::ops {

inline kernels::cuda::Dtype cuda_dtype(at::ScalarType dtype) {
  if (dtype == at::kFloat) return kernels::cuda::Dtype::kFloat;
  return dtype == at::kHalf ? kernels::cuda::Dtype::kFp16 : kernels::cuda::Dtype::kBf16;
}

// x: rows of contiguous elements.
inline kernels::cuda::TokenRows token_rows(const at::Tensor& x) {
  return {x.const_data_ptr(), x.stride(0)};
}

// The stream on which ATen launches operations, and valora its kernels, on the tensor's device.
// That device must be the thread's current one.
inline kernels::cuda::Stream stream_of(const at::Tensor& x) {
  const c10::impl::VirtualGuardImpl device(x.device().type());
  TORCH_CHECK(device.getDevice() == x.device(), "a launch on ", device.getDevice(),
              " with a tensor on ", x.device());
  return device.getStream(x.device()).native_handle();
}

// Throws c10::Error if the launch was refused.
void check_launch(kernels::cuda::Status status, const char* what);
// Of the current GPU:
int32_t multiprocessors();
int32_t shared_bytes();  // per thread block
kernels::CudaArch gpu_arch();
bool is_hopper();  // of compute capability 9.0, for which alone sm_90a code runs

}  // namespace valora::ops
