// Logits in host memory, for sampling.
#pragma once

#include <cstdint>
#include <span>

namespace valora::kernels {

// The result of an argmax.
struct Argmax {
  int64_t index = 0;  // of the first maximum
  float value = 0;
  bool numbers = true;  // false if a value is NaN or +infinity
};

// x must not be empty.
Argmax argmax(std::span<const float> x);

// Sets values whose bit is 0 to -infinity. The bit of x[i] is bit i % 32 of word i / 32; it is 0 if
// there is no such word.
void keep_allowed(std::span<float> x, std::span<const uint32_t> allowed);

}  // namespace valora::kernels
