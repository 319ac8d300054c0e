// Numbers of every dtype on the host: deterministic random values, rounding and packing.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/testing/device_memory.h"
#include "kernels/cuda/types.h"

namespace valora::kernels::cuda {

const char* name_of(Dtype dtype);
// Half the distance from 1 to the next number: the largest relative rounding error.
double unit_roundoff(Dtype dtype);

float rounded(float value, Dtype dtype);
void pack(const float* values, size_t count, Dtype dtype, std::byte* to);
std::vector<float> unpack(const std::vector<std::byte>& bytes, Dtype dtype);

// Generates the same numbers on every machine (SplitMix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  float uniform(float low, float high);
  // Values in [-size, size), representable in the dtype.
  std::vector<float> values(size_t count, Dtype dtype, float size = 1);

  template <typename T>
  void shuffle(std::vector<T>& v) {
    for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[below(static_cast<int64_t>(i))]);
  }

 private:
  uint64_t state_;
};

// Values of a dtype on the device.
class DeviceValues {
 public:
  // Initially poison.
  DeviceValues(size_t count, Dtype dtype, size_t shift = 0)
      : memory_(count * size_of(dtype), shift), dtype_(dtype) {}
  DeviceValues(const std::vector<float>& values, Dtype dtype, size_t shift = 0)
      : DeviceValues(values.size(), dtype, shift) {
    set(values);
  }
  void set(const std::vector<float>& values);
  std::vector<float> get() const { return unpack(memory_.download(), dtype_); }
  void* data() const { return memory_.data(); }
  const DeviceMemory& memory() const { return memory_; }

 private:
  DeviceMemory memory_;
  Dtype dtype_;
};

}  // namespace valora::kernels::cuda
