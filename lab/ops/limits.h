// Measures the machine's memory bandwidth and arithmetic throughput, with the threads in use.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

namespace valora::bench {

// kBytes, kNibbles: weights of 8 and 4 bits, inputs rounded to 8 bits.
enum class Arithmetic : uint8_t { kBf16, kFloat, kBytes, kNibbles };

// A loop on all threads that is as fast as the machine can be.
struct LimitLoop {
  std::function<void()> run;
  double work = 0;  // bytes, or multiplications and additions, per run
};

// The speed of shared memory and cores drifts, so what a limit is compared with is timed in turns
// with its loop. The rates here are those at the start of the run.
class Limits {
 public:
  Limits();
  const LimitLoop& memory() const { return memory_; }  // sequential reads of one array
  // The best product loop over data in L2.
  const LimitLoop& products(Arithmetic kind) const { return products_[static_cast<size_t>(kind)]; }
  double bandwidth() const { return bandwidth_; }  // bytes per second
  // Multiplications and additions per second.
  double arithmetic(Arithmetic kind) const { return arithmetic_[static_cast<size_t>(kind)]; }

 private:
  LimitLoop memory_;
  std::array<LimitLoop, 4> products_;
  double bandwidth_ = 0;
  std::array<double, 4> arithmetic_{};
};

// Bytes of the last-level cache; 32 MiB if the system does not report it.
int64_t last_level_cache();

// Number of copies of `bytes` bytes that exceed twice the last-level cache, so that a rotation
// finds each copy cold.
int64_t cold_copies(int64_t bytes);

}  // namespace valora::bench
