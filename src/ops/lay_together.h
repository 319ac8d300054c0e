// Many weights that are used together in one memory.
#pragma once

#include <span>

#include "ops/weight.h"

namespace valora::ops {

// Elements that a weight takes in a memory that it shares with others: its own, up to a cache line,
// where panels must begin.
int64_t aligned_elements(const Weight& w);

// Moves weights in panels of one dtype side by side onto huge pages, in the given order: a step
// that reads the panels of several adapters then waits for far fewer address translations. Plain
// weights stay where they are.
void lay_together(std::span<Weight* const> weights);

}  // namespace valora::ops
