// Measures the machine's memory bandwidth and arithmetic throughput, with the threads in use,
// during the run.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <chrono>
#include <cstdint>

namespace valora::bench {

// kBytes, kNibbles: weights of 8 and 4 bits, inputs rounded to 8 bits.
enum class Arithmetic : uint8_t { kBf16, kFloat, kBytes, kNibbles };

class Limits {
 public:
  Limits();
  // Measures again if the last measurement is older than a second, because the bandwidth of shared
  // memory drifts. For arithmetic, the best measurement so far counts.
  void refresh();
  double bandwidth() const { return bandwidth_; }  // bytes per second, sequential read of one array
  double lowest_bandwidth() const { return lowest_; }
  double highest_bandwidth() const { return highest_; }
  // Multiplications and additions per second of the best product loop over data in L2.
  double arithmetic(Arithmetic kind) const { return arithmetic_[static_cast<size_t>(kind)]; }

 private:
  void measure_bandwidth();
  void measure_arithmetic();

  at::Tensor array_;
  double bandwidth_ = 0, lowest_ = 0, highest_ = 0;
  std::array<double, 4> arithmetic_{};
  std::chrono::steady_clock::time_point measured_;
};

// Bytes of the last-level cache; 32 MiB if the system does not report it.
int64_t last_level_cache();

// Number of copies of `bytes` bytes that exceed twice the last-level cache, so that a rotation
// finds each copy cold.
int64_t cold_copies(int64_t bytes);

}  // namespace valora::bench
