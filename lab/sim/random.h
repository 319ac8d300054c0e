// Random numbers for workloads: the same with every standard library, up to rounding in std::log
// and std::pow.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace valora::sim {

// The distributions of <random> differ between standard libraries, unlike its generators and
// seed_seq. So the distributions are implemented here.
class Random {
 public:
  enum Purpose : uint32_t {
    kTimes,
    kAdapters,
    kLengths,
    kTokens,
    kLaterLengths,
    kLaterTokens,
    kLaterTimes
  };

  // Each purpose has its own sequence.
  Random(uint32_t seed, Purpose purpose) {
    std::seed_seq both{seed, uint32_t{purpose}};
    bits_.seed(both);
  }

  // In [0, 1), with the 53 bits of a double.
  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }

  // In [min, max]. The remainder favours small values by less than 2^-32.
  int between(int min, int max) {
    const auto count = static_cast<uint64_t>(int64_t{max} - min + 1);
    return static_cast<int>(min + static_cast<int64_t>(bits_() % count));
  }

  // Mean 1, by the inverse of the distribution function.
  double exponential() { return -std::log(1 - uniform()); }

  // Scale 1: mean and variance are `shape`. Marsaglia and Tsang, "A simple method for generating
  // gamma variables", 2000.
  double gamma(double shape) {
    if (shape < 1) {
      const double larger = gamma(shape + 1);
      return larger * std::pow(1 - uniform(), 1 / shape);
    }
    const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    while (true) {
      const double x = normal();
      const double v = std::pow(1 + c * x, 3);
      if (v <= 0) continue;
      if (std::log(1 - uniform()) < x * x / 2 + d * (1 - v + std::log(v))) return d * v;
    }
  }

 private:
  // Marsaglia's polar method. Discards its second value, to keep no state.
  double normal() {
    while (true) {
      const double x = 2 * uniform() - 1;
      const double y = 2 * uniform() - 1;
      const double s = x * x + y * y;
      if (s > 0 && s < 1) return x * std::sqrt(-2 * std::log(s) / s);
    }
  }

  std::mt19937_64 bits_;
};

// Ids below kPromptIds.
inline constexpr int kPromptIds = 32000;
inline std::vector<int32_t> random_prompt(Random& random, int tokens) {
  std::vector<int32_t> prompt(static_cast<size_t>(tokens));
  for (int32_t& id : prompt) id = random.between(0, kPromptIds - 1);
  return prompt;
}

}  // namespace valora::sim
