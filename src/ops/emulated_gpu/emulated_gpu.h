// GPUs for libtorch builds without CUDA: devices in ATen (cuda:0, …), whose memory is the host's,
// and the kernels of kernels/cuda on the machine of kernels/cuda/emulation. A program that links
// this library supports --device cuda. For tests: each step is hundreds of times slower than on a
// GPU.
//
// Environment: VALORA_EMULATED_GPU, the compute capability (80, 86, 89, 90, 120; default 90);
// VALORA_EMULATED_GPUS, the number of GPUs (default 1); VALORA_EMULATED_GPU_MEMORY, the bytes of
// each (default 4 GiB); VALORA_EMULATED_GPU_REPORT, a file for counts of the work that they did
// (counts.h); VALORA_EMULATED_GPU_FAULT, a fault (faults.h); VALORA_EMULATED_GPU_RUNS=0, to measure
// the host's part of a step: launches but those that choose tokens, products, and copies and fills
// of more than kLeftOut bytes are counted but left out, and memory begins as zeros, which take no
// memory until they are read.
#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>

namespace valora::ops::emulated {

int gpu_count();
// The calling thread's current GPU, on which it launches and allocates.
c10::DeviceIndex& current_gpu();
size_t memory_bytes();  // of each GPU
bool runs();            // false: VALORA_EMULATED_GPU_RUNS=0
inline constexpr size_t kLeftOut = 1 << 20;
c10::Allocator* gpu_allocator();

}  // namespace valora::ops::emulated
