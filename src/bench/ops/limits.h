// What the machine can do with the threads in use, measured in the run itself.
#pragma once

#include <ATen/ATen.h>

#include <chrono>

namespace valora::bench {

class Limits {
 public:
  Limits();
  // Measures again where the last measurement is older than a second: the bandwidth drifts where
  // the memory is shared, and of the arithmetic the best that was ever seen counts.
  void refresh();
  double bandwidth() const {
    return bandwidth_;
  }  // bytes a second, reading one array front to back
  double lowest_bandwidth() const { return lowest_; }
  double highest_bandwidth() const { return highest_; }
  // Multiplications and additions a second, of the best product loop over data in the second-level
  // cache.
  double arithmetic(bool float32) const { return float32 ? float_arithmetic_ : bf16_arithmetic_; }

 private:
  void measure_bandwidth();
  void measure_arithmetic();

  at::Tensor array_;
  double bandwidth_ = 0, lowest_ = 0, highest_ = 0;
  double bf16_arithmetic_ = 0, float_arithmetic_ = 0;
  std::chrono::steady_clock::time_point measured_;
};

// Bytes of the last-level cache; 32 MiB where the system does not say.
int64_t last_level_cache();

// Copies of `bytes` bytes that together are more than twice the last-level cache: a cycle over them
// finds each cold.
int64_t cold_copies(int64_t bytes);

}  // namespace valora::bench
