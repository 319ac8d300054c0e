// Counts the work given to the emulated GPU.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace valora::ops::emulated {

struct Counts {
  std::atomic<uint64_t> launches = 0;    // of our kernels, except in replays
  std::atomic<uint64_t> operations = 0;  // of ATen, except views and in replays
  std::atomic<uint64_t> bytes_to_gpu = 0, bytes_to_host = 0;
  std::atomic<uint64_t> captures = 0, replays = 0;
  std::atomic<uint64_t> allocations = 0;
  std::atomic<uint64_t> most_bytes = 0;             // of memory in use on a GPU
  std::atomic<uint64_t> operation_nanoseconds = 0;  // doing the GPU's work (Working)
};

// Written to the file VALORA_EMULATED_GPU_REPORT when the program ends.
Counts& counts();
// They as JSON.
std::string report();

// Its lifetime is work that a GPU would do: one of ATen's operations, or a kernel.
class Working {
 public:
  ~Working() {
    counts().operation_nanoseconds += static_cast<uint64_t>(
        (std::chrono::steady_clock::now() - begin_) / std::chrono::nanoseconds(1));
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace valora::ops::emulated
