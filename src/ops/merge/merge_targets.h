// The implementations of ops/merge/merge.h. The caller has checked the arguments.
#pragma once

#include "ops/merge/merge.h"

namespace valora::ops {

void merge_cpu(std::span<const Merge> merges);
void merge_cuda(std::span<const Merge> merges);
void merge_aten(std::span<const Merge> merges);

}  // namespace valora::ops
