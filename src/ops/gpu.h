// Which GPU there is.
#pragma once

#include <string>

namespace valora::ops {

constexpr int kLeastCapability = 80;  // of the CUDA kernels: 8.0

struct Gpu {
  std::string name;    // as its driver has it; empty: not known
  int capability = 0;  // compute capability, e.g. 90 for 9.0; 0: not known
};

// The current one. Nothing is known in builds without CUDA kernels.
Gpu this_gpu();

}  // namespace valora::ops
