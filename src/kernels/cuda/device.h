// The GPU that launches go to.
#pragma once

#include <string>

#include "kernels/cuda/types.h"

namespace valora::kernels::cuda {

// Of the current GPU; 132, an H100's, if there is none.
int32_t multiprocessors();
// That a thread block of it can have.
int32_t shared_bytes();
// Of its L2 cache; 0 if there is no GPU.
int32_t cache_bytes();
// As its driver has it; empty if there is none.
std::string gpu_name();
// Compute capability, e.g. 90 for 9.0; 0 if there is none.
int32_t capability();
// Whether a launch may begin while the one before it ends: from compute capability 9.0 on, unless
// it is switched off.
bool launches_overlap();
void keep_launches_apart();
const char* message_of(Status status);

}  // namespace valora::kernels::cuda
