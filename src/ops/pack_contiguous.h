// Places weights that are used together in one allocation.
#pragma once

#include <span>

#include "ops/weight.h"

namespace valora::ops {

// Elements that the floats of a weight need in a shared allocation: elements(), rounded up to a
// cache line, so that each weight begins 64-byte aligned.
int64_t aligned_elements(const Weight& w);

// Moves weights in panels, all of one dtype, into one allocation on huge pages, in the given order.
// This reduces TLB misses in a step that reads the panels of several adapters. Plain weights are
// not moved; integers are refused.
void pack_contiguous(std::span<Weight* const> weights);

}  // namespace valora::ops
