// The properties of the GPU in use.
#pragma once

#include <cstdint>
#include <string>

namespace valora::ops {

constexpr int kLeastCapability = 80;  // required by the CUDA kernels: 8.0

struct Gpu {
  std::string name;          // as reported by the driver; empty: unknown
  int capability = 0;        // compute capability, e.g. 90 for 9.0; 0: unknown
  int64_t shared_bytes = 0;  // per thread block
  int64_t cache_bytes = 0;   // L2
};

// Reads the process's settings for GPU launches (compared_launches.h). Throws c10::Error if they
// are invalid.
void prepare_gpu();
// The current GPU. All values are unknown in builds without CUDA kernels.
Gpu this_gpu();

}  // namespace valora::ops
