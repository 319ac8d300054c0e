// Moves weights that are used together into one allocation.
#pragma once

#include <span>

#include "ops/weights/weight.h"

namespace valora::ops {

// The elements that a weight's floats need in a shared allocation: elements(), rounded up to a
// cache line so that each weight begins 64-byte aligned.
int64_t aligned_elements(const Weight& w);

// Moves weights in panels, all of one dtype, into one allocation on huge pages, in the given order.
// This reduces TLB misses in steps that read panels of several adapters. Leaves plain weights where
// they are; throws for integers.
void pack_contiguous(std::span<Weight* const> weights);

}  // namespace valora::ops
