// Logits in host memory, for sampling.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/types/argmax.h"

namespace valora::kernels {

// x must not be empty.
Argmax argmax(std::span<const float> x);

// Sets the values whose bits are 0 to minus infinity: bit i % 32 of word i / 32. Values without a
// word have none.
void keep_allowed(std::span<float> x, std::span<const uint32_t> allowed);

}  // namespace valora::kernels
