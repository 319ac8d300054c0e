// The largest of some values.
#pragma once

#include <cstdint>

namespace valora::kernels {

struct Argmax {
  int64_t index = 0;  // the first of them
  float value = 0;
  bool numbers = true;  // every value is below infinity: none is NaN either
};

}  // namespace valora::kernels
