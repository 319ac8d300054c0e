// Merge without tensor cores, for any dtype and size.
#pragma once

#include "kernels/cuda/merge.h"

namespace valora::kernels::cuda {

Status merge_plain(Dtype dtype, const MergePlan& plan, const DeviceMerge* merges, Stream stream);

}  // namespace valora::kernels::cuda
