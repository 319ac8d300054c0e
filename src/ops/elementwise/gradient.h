// Tells if an operation must record gradients; kernels over raw pointers do not.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace valora::ops {

inline bool wants_gradient(const at::Tensor& x) {
  return x.requires_grad() && c10::GradMode::is_enabled();
}

}  // namespace valora::ops
