// Selects the implementation of an operation by device, dtype and backend. For an operation x, x.cc
// checks the arguments and dispatches to x_cpu.cc, x_cuda.cc or x_aten.cc. Builds without nvcc have
// cuda_absent.cc instead of the x_cuda.cc files.
#pragma once

#include <ATen/ATen.h>

#include "ops/device/backend.h"
#include "ops/weights/weight.h"

namespace valora::ops {

enum class Target : uint8_t {
  kCpu,   // kernels/cpu: float and bf16
  kCuda,  // kernels/cuda: float, bf16 and fp16
  kAten,  // the reference backend, and other dtypes and devices
};

// True if this build includes kernels/cuda.
bool has_cuda_kernels();

inline Target target_of(at::ScalarType dtype, at::Device device) {
  if (backend() != Backend::kNative) return Target::kAten;
  const bool wide = dtype == at::kFloat || dtype == at::kBFloat16;
  if (device.is_cpu() && wide) return Target::kCpu;
  if (device.is_cuda() && (wide || dtype == at::kHalf) && has_cuda_kernels()) return Target::kCuda;
  return Target::kAten;
}
// Only ATen records gradients.
inline Target target_of(const at::Tensor& x, bool differentiates = false) {
  return differentiates ? Target::kAten : target_of(x.scalar_type(), x.device());
}
// A weight's layout was chosen for its target. Plain weights in host memory are for training.
inline Target target_of(const Weight& w) {
  if (w.form() == WeightForm::kPanels) return Target::kCpu;
  return w.data().is_cpu() ? Target::kAten : target_of(w.dtype(), w.data().device());
}

}  // namespace valora::ops
