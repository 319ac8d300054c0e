// Merge without tensor cores: any dtype, any size.
#pragma once

#include "kernels/cuda/merge.h"

namespace valora::kernels::cuda {

Status merge_plain(Dtype dtype, const MergePlan& plan, const DeviceMerge* merges, Stream stream);

}  // namespace valora::kernels::cuda
