// What a GPU launches apart although it could be one launch, for comparison (docs/gpu.md).
#pragma once

namespace valora::ops {

struct SeparateLaunches {
  bool products = false;  // with the weights of a layer that have the same input
  bool rotation = false;  // of queries, of keys, and the store of keys and values
  bool merge = false;     // of the parts of decode attention
  bool shrink = false;    // of adapters, beside the product with the weights
  bool overlap = false;   // of a launch's begin with the end of the one before
};

// Named by VALORA_GPU_SEPARATE, which is read once. Throws c10::Error for other names.
const SeparateLaunches& separate_launches();

}  // namespace valora::ops
