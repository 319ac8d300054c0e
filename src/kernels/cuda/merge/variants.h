// Ways to merge besides that of merge.cu.
#pragma once

#include "kernels/cuda/merge.h"

namespace valora::kernels::cuda {

// Merge without tensor cores, for any dtype and size.
Status merge_plain(Dtype dtype, const MergePlan& plan, const DeviceMerge* merges, Stream stream);

// Merge with 128 outputs per thread block, for high ranks.
Status merge_wide(Dtype dtype, const MergePlan& plan, const DeviceMerge* merges, Stream stream);

}  // namespace valora::kernels::cuda
