// Many small weights that are used together, as an adapter's are, in one memory.
#pragma once

#include <span>

#include "ops/linear.h"

namespace valora::ops {

// Moves packed weights of one dtype side by side onto huge pages, in the given order: a step that
// reads the panels of several adapters then waits for far fewer address translations. Plain weights
// stay where they are.
void lay_together(std::span<Weight* const> weights);

}  // namespace valora::ops
