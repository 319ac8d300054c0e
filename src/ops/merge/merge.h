// Merges adapters into weights (VaLoRA §4.4.1).
#pragma once

#include <span>

#include "ops/lora/lora.h"

namespace valora::ops {

// One linear: merged = weight + coefficient · B A, with the adapter's A and B on this module; its
// scale is not applied. `merged` has the shape, layout and dtype of `weight`, holds floats, and may
// share its data. Pointers must not be null.
struct Merge {
  const Weight* weight = nullptr;
  const Weight* merged = nullptr;
  const AdapterWeights* adapter = nullptr;
  int module = 0;
  float coefficient = 1;
};

// Merges all linears in one launch, in fp32, rounded once. Throws c10::Error unless all weights
// have the same dtype, layout and device, and the adapters touch the modules and are resident.
void merge(std::span<const Merge> merges);

}  // namespace valora::ops
