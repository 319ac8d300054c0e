// Which GPU there is.
#pragma once

#include <cstdint>
#include <string>

namespace valora::ops {

constexpr int kLeastCapability = 80;  // of the CUDA kernels: 8.0

struct Gpu {
  std::string name;          // as its driver has it; empty: not known
  int capability = 0;        // compute capability, e.g. 90 for 9.0; 0: not known
  int64_t shared_bytes = 0;  // of a thread block
  int64_t cache_bytes = 0;   // L2
};

// Settings of the process for launches on GPUs (separate_launches.h). Throws c10::Error if they are
// invalid.
void prepare_gpu();
// The current one. Nothing is known in builds without CUDA kernels.
Gpu this_gpu();

}  // namespace valora::ops
