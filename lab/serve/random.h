// Random numbers that are the same on every platform, unlike the standard library's distributions.
#pragma once

#include <cstdint>
#include <random>

#include "lab/serve/load.h"

namespace valora::bench {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  double uniform01() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }  // [0, 1)
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>(uniform01() * static_cast<double>(bound));
  }
  int in(Range range) {
    return range.min + static_cast<int>(below(static_cast<uint64_t>(range.max - range.min) + 1));
  }
  uint64_t bits() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace valora::bench
