// Measures GPU launches of low-rank products, and merges, with given tiles (VaLoRA §4.3.2).
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "base/clock.h"
#include "kernels/tiles/tile.h"

namespace valora::ops {

// Measures as in a captured step: successive launches from a graph, with factors not in any cache,
// but inputs and outputs that are. Narrow shapes run as decodes with one adapter per token, long
// ones as one prompt. Merges are those of MergeOperands. Uses bf16; fp16 takes as long. Not
// thread-safe.
class LoraProfiler {
 public:
  virtual ~LoraProfiler() = default;
  // Null in builds without CUDA kernels, or if the device is not a GPU.
  static std::unique_ptr<LoraProfiler> make(at::Device device, const Clock& clock);
  // Seconds per launch. shape: any except a dense product. Throws c10::Error if memory is
  // exhausted.
  virtual double seconds(const kernels::ProductShape& shape, const kernels::CudaTile& tile) = 0;
};

}  // namespace valora::ops
