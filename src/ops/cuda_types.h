// Conversions from tensors to the arguments of CUDA kernels, for the *_cuda.cc files. These include
// no CUDA header, so that they compile with any libtorch.
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

// The stream on which ATen launches its operations on the tensor's device.
inline kernels::cuda::Stream stream_of(const at::Tensor& x) {
  return c10::impl::VirtualGuardImpl(x.device().type()).getStream(x.device()).native_handle();
}

// Throws c10::Error if a launch was refused.
void check_launch(kernels::cuda::Status status, const char* what);
// Of the current GPU.
int32_t multiprocessors();
int32_t shared_bytes();  // of a thread block
kernels::CudaArch gpu_arch();

}  // namespace valora::ops
