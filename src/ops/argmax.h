// The largest of some values in host memory, where answers are sampled.
#pragma once

#include <span>

#include "kernels/types/argmax.h"

namespace valora::ops {

// x: at least one value.
kernels::Argmax argmax(std::span<const float> x);

}  // namespace valora::ops
