// Properties of the current GPU.
#pragma once

#include <string>

#include "kernels/cuda/types.h"

namespace valora::kernels::cuda {

// 132, as on an H100, if there is no GPU.
int32_t multiprocessors();
// Shared memory available to a thread block.
int32_t shared_bytes();
// Size of the L2 cache; 0 if there is no GPU.
int32_t cache_bytes();
// As reported by the driver; empty if there is no GPU.
std::string gpu_name();
// Compute capability, e.g. 90 for 9.0; 0 if there is no GPU.
int32_t capability();
// True if a launch may begin while the previous one is finishing: from compute capability 9.0,
// unless switched off.
bool launches_overlap();
void disable_launch_overlap();
const char* message_of(Status status);

}  // namespace valora::kernels::cuda
