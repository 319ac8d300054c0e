// Whether an operation must leave a trace for gradients: kernels over raw pointers leave none.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace valora::ops {

inline bool wants_gradient(const at::Tensor& x) {
  return x.requires_grad() && c10::GradMode::is_enabled();
}

}  // namespace valora::ops
