// How an op's door finds its CPU body: float and bf16 go to a raw-pointer kernel, the rest to ATen.
#pragma once

#include <ATen/ATen.h>

#include "kernels/cpu/bf16.h"

namespace valora::ops {

inline bool on_cpu_kernel(const at::Tensor& x) {
  return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

template <typename T>
T* raw(const at::Tensor& x) {
  return static_cast<T*>(x.data_ptr());
}

// Calls body(T{}) with T = float or kernels::bf16.
template <typename Body>
decltype(auto) dispatch_cpu(const at::Tensor& x, Body&& body) {
  if (x.scalar_type() == at::kFloat) return body(float{});
  return body(kernels::bf16{});
}

}  // namespace valora::ops
