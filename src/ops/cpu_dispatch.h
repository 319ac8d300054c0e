// How an op's door finds its CPU body: float and bf16 go to a raw-pointer kernel, the rest, other
// devices and the reference backend to ATen.
#pragma once

#include <ATen/ATen.h>

#include "kernels/types/bf16.h"
#include "ops/backend.h"

namespace valora::ops {

inline bool on_cpu_kernel(at::ScalarType dtype, at::Device device) {
  return device.is_cpu() && (dtype == at::kFloat || dtype == at::kBFloat16) &&
         backend() == Backend::kNative;
}
inline bool on_cpu_kernel(const at::Tensor& x) {
  return on_cpu_kernel(x.scalar_type(), x.device());
}

// x: [T, heads, dim]: whether a token's heads lie side by side, as the kernels read them. Tokens
// may lie apart.
inline bool heads_side_by_side(const at::Tensor& x) {
  return x.dim() == 3 && x.stride(2) == 1 && (x.size(1) == 1 || x.stride(1) == x.size(2));
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
