// Who computes an operation: the one place that looks at device, dtype and backend. An operation's
// x.cc checks its arguments and asks here; its implementations are x_cpu.cc and x_aten.cc.
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
// Kernels leave no trace for gradients.
inline Target target_of(const at::Tensor& x, bool differentiates = false) {
  return differentiates ? Target::kAten : target_of(x.scalar_type(), x.device());
}
// A weight was laid out for its target when it was made.
inline Target target_of(const Weight& w) {
  return w.form() == WeightForm::kPanels ? Target::kCpu : Target::kAten;
}

}  // namespace valora::ops
