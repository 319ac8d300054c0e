// Merge with 128 outputs per thread block, for high ranks.
#pragma once

#include "kernels/cuda/merge.h"

namespace valora::kernels::cuda {

Status merge_wide(Dtype dtype, const MergePlan& plan, const DeviceMerge* merges, Stream stream);

}  // namespace valora::kernels::cuda
