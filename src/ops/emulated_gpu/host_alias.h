// The emulated GPU's tensors are in host memory. These functions present them as host tensors, for
// ATen's CPU kernels, and convert results back.
#pragma once

#include <ATen/ATen.h>

namespace valora::ops::emulated {

inline bool on_gpu(const at::Tensor& x) { return x.defined() && x.is_cuda(); }

// A host tensor that shares the memory of x, a GPU tensor, and keeps it alive.
at::Tensor host_alias(const at::Tensor& x);
// A tensor on `gpu` with the values of x, which an operation on aliases returned. If x is a view of
// an alias, it shares that alias's memory; otherwise it takes over x's memory.
at::Tensor gpu_tensor(const at::Tensor& x, c10::Device gpu);
// Updates x after an operation wrote to `alias`, the result of host_alias(x): x takes its sizes,
// and its memory if it had to grow.
void follow(const at::Tensor& alias, const at::Tensor& x);

}  // namespace valora::ops::emulated
