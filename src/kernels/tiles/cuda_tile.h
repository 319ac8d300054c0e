// The tiles of the low-rank products on GPUs: which are compiled, and the formula. Header-only, for
// the kernels and for tables alike.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/tiles/shape.h"

namespace valora::kernels {

// How a launch is cut (kernels/cuda/lora.h). Any values are correct: the nearest tile that is
// compiled runs.
struct CudaTile {
  uint16_t width = 16;  // per thread block: ranks of a shrink, outputs of an expand
  uint8_t warps = 8;    // per thread block
  uint8_t stages = 1;   // of a shrink: pairs of steps whose loads are under way; 1 for an expand
  uint8_t splits = 1;   // thread blocks that share the inputs of a shrink; 1 for an expand

  friend bool operator==(const CudaTile&, const CudaTile&) = default;
};

// A warp of an expand has one or two groups of this many outputs.
inline constexpr int kCudaGroupOuts = 32;
// A warp of a shrink takes this many inputs at a time.
inline constexpr int kCudaChunk = 64;
inline constexpr int kCudaShrinkWidths[] = {8, 16, 32}, kCudaShrinkWarps[] = {4, 8},
                     kCudaShrinkStages[] = {2, 4}, kCudaSplits[] = {1, 2, 4, 8, 16},
                     kCudaExpandWarps[] = {2, 4, 8}, kCudaExpandGroups[] = {1, 2};

// Whether a thread's sums leave registers for four stages. bands: of 16 tokens.
constexpr bool cuda_stages_fit(int bands, int width, int stages) {
  return stages <= 2 || bands * width <= 16;
}

template <size_t kCount>
constexpr int nearest_of(const int (&values)[kCount], int wanted) {
  int found = values[0];
  for (const int value : values)
    if (value <= wanted) found = value;
  return found;
}

// The tile that runs if `tile` is requested for a shape on a GPU.
constexpr CudaTile effective_cuda_tile(const ProductShape& s, const CudaTile& tile) {
  CudaTile t;
  if (is_expand(s.kind)) {
    t.warps = static_cast<uint8_t>(nearest_of(kCudaExpandWarps, tile.warps));
    int groups = nearest_of(kCudaExpandGroups, tile.width / (kCudaGroupOuts * t.warps));
    if (groups > 1 && t.warps * kCudaGroupOuts >= s.n) groups = 1;
    while (t.warps > 2 && t.warps / 2 * groups * kCudaGroupOuts >= s.n)
      t.warps = static_cast<uint8_t>(t.warps / 2);
    t.width = static_cast<uint16_t>(kCudaGroupOuts * t.warps * groups);
    return t;
  }
  int width = nearest_of(kCudaShrinkWidths, tile.width);
  while (width > 8 && width / 2 >= s.n) width /= 2;
  t.width = static_cast<uint16_t>(width);
  t.warps = static_cast<uint8_t>(nearest_of(kCudaShrinkWarps, tile.warps));
  int stages = nearest_of(kCudaShrinkStages, tile.stages);
  if (!cuda_stages_fit(is_long(s.kind) ? 2 : 1, width, stages)) stages = 2;
  t.stages = static_cast<uint8_t>(stages);
  int splits = nearest_of(kCudaSplits, tile.splits);
  // Each thread block has inputs.
  while (splits > 1 && int64_t{splits - 1} * t.warps * kCudaChunk >= s.k) splits /= 2;
  t.splits = static_cast<uint8_t>(splits);
  return t;
}

// Of the largest GPUs of an architecture.
constexpr int typical_multiprocessors(CudaArch arch) {
  switch (arch) {
    case CudaArch::kSm80: return 108;
    case CudaArch::kSm86: return 72;
    case CudaArch::kSm89: return 128;
    case CudaArch::kSm90: return 132;
    case CudaArch::kSm120: break;
  }
  return 170;
}

// The tile of a shape without an entry in the table; shape.processor is a GPU.
constexpr CudaTile cuda_formula_tile(const ProductShape& s) {
  if (is_expand(s.kind)) {
    const int groups = is_long(s.kind) ? 2 : 1;
    return effective_cuda_tile(s, {static_cast<uint16_t>(4 * groups * kCudaGroupOuts), 4, 1, 1});
  }
  CudaTile tile{static_cast<uint16_t>(is_long(s.kind) && s.n > 16 ? 32 : 16), 8, 2, 1};
  if (s.float32) return effective_cuda_tile(s, tile);  // its kernel does not split
  const int64_t blocks =
      std::max<int64_t>(s.m, 1) * std::max<int64_t>((s.n + tile.width - 1) / tile.width, 1);
  // A thread block should have at least 512 inputs, two loads per thread and row.
  while (tile.splits < 8 &&
         blocks * tile.splits * 2 <= typical_multiprocessors(s.processor.arch()) &&
         s.k >= int64_t{1024} * tile.splits)
    tile.splits = static_cast<uint8_t>(tile.splits * 2);
  return effective_cuda_tile(s, tile);
}

}  // namespace valora::kernels
