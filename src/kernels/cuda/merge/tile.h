// The part of a weight that one thread block merges: as many outputs as the launch's tile is wide.
#pragma once

#include "kernels/tiles/cuda_tile.h"

namespace valora::kernels::cuda {

inline constexpr int kMergeRows = kCudaMergeWidths[0];  // without tensor cores, too
inline constexpr int kWideMergeRows = kCudaMergeWidths[1];
inline constexpr int kMergeColumns = 1024;  // inputs; enough to amortise finding the linear

}  // namespace valora::kernels::cuda
