// What a merge kernel (KernelSet::merge) is asked for: one thread, a block of one weight.
#pragma once

#include <cstdint>

#include "kernels/cpu/merge/merge.h"

namespace valora::kernels {

// Panels [panel_begin, panel_end) of the weight over its vectors (kVectorInputs inputs each)
// [vector_begin, vector_end).
struct MergeBlock {
  int64_t panel_begin = 0, panel_end = 0;
  int64_t vector_begin = 0, vector_end = 0;
};

// Inputs are taken in runs of this many at most, so that a block's scratch has room for whole ones.
inline constexpr int64_t kMaxMergeRun = 16;

// A of a block, transposed: for each input all ranks, in pairs for bf16.
template <typename T>
constexpr int64_t scratch_elements(int64_t rank, int64_t vectors) {
  constexpr int64_t inputs = kVectorInputs<T>;
  const int64_t rounded = (vectors * inputs + kMaxMergeRun - 1) / kMaxMergeRun * kMaxMergeRun;
  return rounded * ((rank + inputs - 1) / inputs * inputs);
}

}  // namespace valora::kernels
