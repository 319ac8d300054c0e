// Measures the launches of low-rank products on a GPU with given tiles (VaLoRA §4.3.2).
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "base/clock.h"
#include "kernels/tiles/tile.h"

namespace valora::ops {

// As in a captured step: one launch after the other from a graph, with factors that are in no
// cache, inputs and outputs that are. Narrow shapes run as decodes, an adapter for each token, long
// ones as one prompt. In bf16; fp16 takes as long. Not thread-safe.
class LoraProfiler {
 public:
  virtual ~LoraProfiler() = default;
  // Null in builds without CUDA kernels, or if the device is no GPU.
  static std::unique_ptr<LoraProfiler> make(at::Device device, const Clock& clock);
  // Seconds per launch. shape: not a dense product. Throws c10::Error if memory is exhausted.
  virtual double seconds(const kernels::ProductShape& shape, const kernels::CudaTile& tile) = 0;
};

}  // namespace valora::ops
