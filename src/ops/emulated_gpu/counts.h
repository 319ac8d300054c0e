// What the emulated GPU was asked to do.
#pragma once

#include <atomic>
#include <cstdint>

namespace valora::ops::emulated {

struct Counts {
  std::atomic<uint64_t> launches = 0;    // of our kernels, but those of replays
  std::atomic<uint64_t> operations = 0;  // of ATen, but views, and those of replays
  std::atomic<uint64_t> bytes_to_gpu = 0, bytes_to_host = 0;
  std::atomic<uint64_t> captures = 0, replays = 0;
};

// Written to the file VALORA_EMULATED_GPU_REPORT at the end of the program.
Counts& counts();

}  // namespace valora::ops::emulated
