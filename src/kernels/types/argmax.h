// The result of an argmax.
#pragma once

#include <cstdint>

namespace valora::kernels {

struct Argmax {
  int64_t index = 0;  // of the first maximum
  float value = 0;
  bool numbers = true;  // false if a value is NaN or +infinity
};

}  // namespace valora::kernels
