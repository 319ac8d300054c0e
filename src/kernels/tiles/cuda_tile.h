// Tiles of low-rank products and merges on GPUs: which ones are compiled, and the formula.
// Header-only, because both kernels and tables use it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/tiles/shape.h"

namespace valora::kernels {

// How a launch is tiled (kernels/cuda/lora.h, merge.h). Any values give correct results: the
// nearest compiled tile runs.
struct CudaTile {
  uint16_t width = 16;  // per thread block: ranks of a shrink, outputs of an expand or a merge
  uint8_t warps = 8;    // per thread block
  // Of a shrink: pairs of steps whose loads are in flight; of a wide merge: parts of ranks in
  // shared memory. 1 for others.
  uint8_t stages = 1;
  uint8_t splits = 1;  // thread blocks that share a shrink's inputs; 1 for others

  friend bool operator==(const CudaTile&, const CudaTile&) = default;
};

// Each warp of an expand handles one or two groups of this many outputs.
inline constexpr int kCudaGroupOuts = 32;
// Each warp of a shrink reads this many inputs at a time.
inline constexpr int kCudaChunk = 64;
inline constexpr int kCudaShrinkWidths[] = {8, 16, 32}, kCudaShrinkWarps[] = {4, 8},
                     kCudaShrinkStages[] = {2, 4}, kCudaSplits[] = {1, 2, 4, 8, 16},
                     kCudaExpandWarps[] = {2, 4, 8}, kCudaExpandGroups[] = {1, 2},
                     kCudaMergeWidths[] = {64, 128}, kCudaMergeStages[] = {2, 3};
// Each warp of a merge handles as many weights as 16 outputs of a step.
inline constexpr int kCudaMergeOuts = 16;

// True if a thread's sums leave enough registers for this many stages. bands: bands of 16 tokens.
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
  if (s.kind == ProductKind::kMerge) {
    const bool wide = !s.float32 && tile.width >= kCudaMergeWidths[1];
    t.width = static_cast<uint16_t>(kCudaMergeWidths[wide ? 1 : 0]);
    t.warps = static_cast<uint8_t>(t.width / kCudaMergeOuts);
    t.stages = static_cast<uint8_t>(wide ? nearest_of(kCudaMergeStages, tile.stages) : 1);
    return t;
  }
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
  // Every thread block must have inputs.
  while (splits > 1 && int64_t{splits - 1} * t.warps * kCudaChunk >= s.k) splits /= 2;
  t.splits = static_cast<uint8_t>(splits);
  return t;
}

// The multiprocessors of an architecture's largest GPUs.
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

// For a shrink. Fitted to measurements on an H200: a few tiles are split finely, so that most
// multiprocessors have loads in flight; once there is about one thread block per multiprocessor,
// splits only cost time.
constexpr CudaTile cuda_shrink_formula(const ProductShape& s) {
  constexpr int64_t kInputs = int64_t{4} * kCudaChunk, kManyInputs = 8192;
  const int64_t processors = typical_multiprocessors(s.processor.arch()),
                tiles = std::max<int64_t>(s.m, 1);
  const auto splits = [&](int64_t wanted, int warps) {
    const int64_t most = std::max<int64_t>(s.k / (int64_t{warps} * kCudaChunk), 1);
    return static_cast<uint8_t>(std::min(wanted, most));
  };
  if (is_long(s.kind)) {
    const int width = s.n > 16 ? 32 : s.n > 8 ? 16 : 8;
    const int64_t blocks = tiles * std::max<int64_t>((s.n + width - 1) / width, 1);
    const int64_t wanted = blocks * 16 <= 6 * processors  ? 8
                           : blocks * 4 <= 3 * processors ? 4
                           : blocks * 2 <= 3 * processors ? 2
                                                          : 1;
    const int warps = s.k >= kManyInputs ? 8 : 4;
    return {static_cast<uint16_t>(width), static_cast<uint8_t>(warps), 2, splits(wanted, warps)};
  }
  const int64_t blocks = tiles * std::max<int64_t>((s.n + 15) / 16, 1);
  if (blocks * 4 <= processors)
    return s.k >= kManyInputs ? CudaTile{16, 8, 2, splits(16, 8)}
                              : CudaTile{8, 4, 2, splits(16, 4)};
  if (blocks * 4 <= 5 * processors)
    return s.k < 4 * kInputs ? CudaTile{8, 4, 2, splits(2, 4)} : CudaTile{16, 8, 2, splits(4, 8)};
  return {16, 8, 2, 1};
}

// For a merge. Not fitted to measurements: at high ranks narrow tiles need more bandwidth of the L2
// cache than an H100 has, and wide tiles half as much of it. Two thread blocks of wide tiles fit on
// multiprocessors of sm_90 alone.
constexpr CudaTile cuda_merge_formula(const ProductShape& s) {
  constexpr int64_t kStaged = 64;  // ranks that narrow tiles keep in shared memory
  const bool wide = s.processor.arch() == CudaArch::kSm90 && s.k > kStaged;
  return wide ? CudaTile{128, 8, 3, 1} : CudaTile{64, 4, 1, 1};
}

// The tile of a shape without an entry in the table; shape.processor is a GPU.
constexpr CudaTile cuda_formula_tile(const ProductShape& s) {
  if (s.kind == ProductKind::kMerge) return effective_cuda_tile(s, cuda_merge_formula(s));
  if (s.float32) return effective_cuda_tile(s, {16, 8, 2, 1});  // fp32 kernels lack these choices
  if (is_shrink(s.kind)) return effective_cuda_tile(s, cuda_shrink_formula(s));
  if (!is_long(s.kind)) return effective_cuda_tile(s, {128, 4, 1, 1});
  return effective_cuda_tile(s, s.n >= 16384 ? CudaTile{256, 4, 1, 1} : CudaTile{64, 2, 1, 1});
}

}  // namespace valora::kernels
