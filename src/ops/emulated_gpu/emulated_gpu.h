// A GPU for libtorch's builds without CUDA: its device in ATen (cuda:0), whose memory is the
// host's, and the kernels of kernels/cuda on the machine of kernels/cuda/emulation. A program that
// links it has --device cuda. For tests: each step is hundreds of times slower than on a GPU.
//
// Environment: VALORA_EMULATED_GPU, the compute capability (80, 86, 89, 90, 120; default 90);
// VALORA_EMULATED_GPU_MEMORY, its bytes (default 4 GiB); VALORA_EMULATED_GPU_REPORT, a file for
// what it was asked to do (counts.h); VALORA_EMULATED_GPU_FAULT, a fault (faults.h).
#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>

namespace valora::ops::emulated {

size_t memory_bytes();
c10::Allocator* gpu_allocator();

}  // namespace valora::ops::emulated
