// Argmax over values in host memory, for greedy sampling.
#pragma once

#include <span>

#include "kernels/types/argmax.h"

namespace valora::ops {

// x must not be empty.
kernels::Argmax argmax(std::span<const float> x);

}  // namespace valora::ops
