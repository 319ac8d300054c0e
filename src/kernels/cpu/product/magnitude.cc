#include "kernels/cpu/product/magnitude.h"

#include <algorithm>
#include <bit>

#include "kernels/cpu/isa/clones.h"

namespace valora::kernels {

VALORA_CLONES uint32_t largest_bits(const float* x, int64_t count) {
  uint32_t most = 0;
  for (int64_t i = 0; i < count; ++i)
    most = std::max(most, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  return most;
}

}  // namespace valora::kernels
