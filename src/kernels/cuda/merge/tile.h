// The part of a weight that one thread block merges.
#pragma once

namespace valora::kernels::cuda {

inline constexpr int kMergeRows = 64;       // outputs
inline constexpr int kMergeColumns = 1024;  // inputs; enough to amortise finding the linear

}  // namespace valora::kernels::cuda
