// The sets of FlashInfer's kernels that this build has: flashinfer_units.inc, which CMake writes,
// has a line VALORA_FLASHINFER_UNIT(type, dim) for each of FA2, and VALORA_FLASHINFER_HOPPER_UNIT
// for each of FA3.
#pragma once

#include "kernels/cuda/attention/flashinfer.h"
#include "kernels/cuda/attention/hopper_plan.h"

namespace valora::kernels::cuda {

#define VALORA_FLASHINFER_UNIT(type, dim) Status flashinfer_##type##_##dim(const PromptCall& call);
#define VALORA_FLASHINFER_HOPPER_UNIT(type, dim) \
  Status hopper_flashinfer_##type##_##dim(const PromptCall& call);
#include "flashinfer_units.inc"
#undef VALORA_FLASHINFER_UNIT
#undef VALORA_FLASHINFER_HOPPER_UNIT

}  // namespace valora::kernels::cuda
