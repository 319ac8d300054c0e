// Selects the implementation of an operation from device, dtype and backend. For an operation x,
// x.cc checks the arguments and dispatches to x_cpu.cc or x_aten.cc.
#pragma once

#include <ATen/ATen.h>

#include "ops/backend.h"
#include "ops/weight.h"

namespace valora::ops {

enum class Target : uint8_t {
  kCpu,   // kernels/cpu: float and bf16
  kAten,  // the reference backend, other dtypes, other devices
};

inline Target target_of(at::ScalarType dtype, at::Device device) {
  const bool native = device.is_cpu() && (dtype == at::kFloat || dtype == at::kBFloat16) &&
                      backend() == Backend::kNative;
  return native ? Target::kCpu : Target::kAten;
}
// The kernels do not record gradients.
inline Target target_of(const at::Tensor& x, bool differentiates = false) {
  return differentiates ? Target::kAten : target_of(x.scalar_type(), x.device());
}
// The layout of a weight was chosen for its target.
inline Target target_of(const Weight& w) {
  return w.form() == WeightForm::kPanels ? Target::kCpu : Target::kAten;
}

}  // namespace valora::ops
