// Other ways to launch the work of GPUs, for comparison (docs/gpu.md).
#pragma once

namespace valora::ops {

// GPU work to launch separately although one launch could do it.
struct SeparateLaunches {
  bool products = false;  // products of a layer's weights that have the same input
  bool rotation = false;  // rotation of queries, rotation of keys, and the store of keys and values
  bool merge = false;     // merging the parts of decode attention
  bool shrink = false;    // adapters' shrink, not concurrent with the dense product
  bool activation = false;  // the activation of a gated product, not in its adapters' expand
  bool overlap = false;  // no overlap between the start of a launch and the end of the one before
};

// Named by VALORA_GPU_SEPARATE, which is read once. Throws c10::Error for unknown names.
const SeparateLaunches& separate_launches();

// Which kernels compute the attention of prompts on GPUs:
// VALORA_GPU_PREFILL, which is read once: "own", as without it, or "flashinfer". Throws c10::Error
// for other values.
bool prompts_by_flashinfer();

}  // namespace valora::ops
