// The sets of FlashInfer's kernels that this build has: flashinfer_units.inc, which CMake writes,
// has a line VALORA_FLASHINFER_UNIT(type, dim) for each.
#pragma once

#include "kernels/cuda/attention/flashinfer.h"

namespace valora::kernels::cuda {

#define VALORA_FLASHINFER_UNIT(type, dim) Status flashinfer_##type##_##dim(const PromptCall& call);
#include "flashinfer_units.inc"
#undef VALORA_FLASHINFER_UNIT

}  // namespace valora::kernels::cuda
