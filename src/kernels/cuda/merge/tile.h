// The tile that a thread block merges.
#pragma once

namespace valora::kernels::cuda {

inline constexpr int kMergeRows = 64;       // outputs
inline constexpr int kMergeColumns = 1024;  // inputs; long, so that finding the linear costs little

}  // namespace valora::kernels::cuda
