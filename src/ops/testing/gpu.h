// For tests that need a GPU, real or emulated.
#pragma once

#include <ATen/Context.h>

#include "ops/device/dispatch.h"

namespace valora::ops::testing_support {

// True if there is a GPU and this build has kernels for it.
inline bool has_gpu() { return at::globalContext().hasCUDA() && has_cuda_kernels(); }

}  // namespace valora::ops::testing_support
