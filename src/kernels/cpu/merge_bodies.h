// The merge's inner functions, one table an instruction set and type: one thread, a block of one
// weight.
#pragma once

#include <cstdint>

#include "kernels/cpu/merge.h"

namespace valora::kernels {

// Panels [panel_begin, panel_end) of the weight over its vectors (kVectorInputs inputs each)
// [vector_begin, vector_end).
struct MergeBlock {
  int64_t panel_begin = 0, panel_end = 0;
  int64_t vector_begin = 0, vector_end = 0;
};

template <typename T>
struct MergeBodies {
  // scratch: at least scratch_elements(rank, vectors of the block), on a 64-byte boundary.
  void (*merge)(const Merge<T>& merge, const MergeBlock& block, T* scratch);
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

extern const MergeBodies<bf16> kAvx512Bf16Merge;
extern const MergeBodies<bf16> kAvx512Merge;
extern const MergeBodies<bf16> kAvx2Merge;
extern const MergeBodies<bf16> kPortableMerge;
extern const MergeBodies<float> kAvx512FloatMerge;
extern const MergeBodies<float> kAvx2FloatMerge;
extern const MergeBodies<float> kPortableFloatMerge;

}  // namespace valora::kernels
