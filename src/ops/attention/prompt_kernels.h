// Which kernels compute the attention of prompts on GPUs, for comparison (docs/gpu.md).
#pragma once

namespace valora::ops {

// VALORA_GPU_PREFILL, which is read once: "own", as without it, or "flashinfer". Throws c10::Error
// for other values.
bool prompts_by_flashinfer();

}  // namespace valora::ops
