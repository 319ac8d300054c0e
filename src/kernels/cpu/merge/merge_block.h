// Arguments of the merge kernel KernelSet::merge. Each call merges one block of a weight on one
// thread.
#pragma once

#include <cstdint>

#include "kernels/cpu/merge/merge.h"

namespace valora::kernels {

// Panels [panel_begin, panel_end) of a weight and, in each, vectors [vector_begin, vector_end) of
// kVectorInputs inputs.
struct MergeBlock {
  int64_t panel_begin = 0, panel_end = 0;
  int64_t vector_begin = 0, vector_end = 0;
};

// The most inputs per run (kMergeRun) with any instruction set. The scratch memory holds whole
// runs.
inline constexpr int64_t kMaxMergeRun = 16;
static_assert(kCutInputs % kMaxMergeRun == 0, "a run is within one piece of a panel");

// Elements of a block's transposed A: all ranks for each input, in pairs for bf16.
template <typename T>
constexpr int64_t scratch_elements(int64_t rank, int64_t vectors) {
  constexpr int64_t inputs = kVectorInputs<T>;
  const int64_t rounded = (vectors * inputs + kMaxMergeRun - 1) / kMaxMergeRun * kMaxMergeRun;
  return rounded * ((rank + inputs - 1) / inputs * inputs);
}

}  // namespace valora::kernels
