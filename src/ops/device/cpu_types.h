// Converts tensors to arguments of CPU kernels, for the *_cpu.cc files.
#pragma once

#include <ATen/ATen.h>

#include "kernels/types/bf16.h"

namespace valora::ops {

template <typename T>
T* raw(const at::Tensor& x) {
  return static_cast<T*>(x.data_ptr());
}

// Calls body(T{}) with T = float or kernels::bf16.
template <typename Body>
decltype(auto) with_cpu_type(at::ScalarType dtype, Body&& body) {
  if (dtype == at::kFloat) return body(float{});
  return body(kernels::bf16{});
}
template <typename Body>
decltype(auto) with_cpu_type(const at::Tensor& x, Body&& body) {
  return with_cpu_type(x.scalar_type(), std::forward<Body>(body));
}

}  // namespace valora::ops
