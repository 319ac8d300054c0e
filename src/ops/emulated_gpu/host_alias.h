// Tensors of the emulated GPU lie in host memory: the same values as tensors of the host, for
// ATen's kernels of CPUs, and back.
#pragma once

#include <ATen/ATen.h>

namespace valora::ops::emulated {

inline bool on_gpu(const at::Tensor& x) { return x.defined() && x.is_cuda(); }

// A tensor of the host that shares the memory of x, which is on the GPU, and keeps it.
at::Tensor host_alias(const at::Tensor& x);
// The tensor of the GPU with the values of x, a result of an operation on aliases: it shares the
// memory of the tensor that x is a view of, or takes that of x.
at::Tensor gpu_tensor(const at::Tensor& x);
// After an operation wrote to `alias`, which was host_alias(x): x has its sizes, and its memory if
// that had to grow.
void follow(const at::Tensor& alias, const at::Tensor& x);

}  // namespace valora::ops::emulated
