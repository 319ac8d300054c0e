// Adapters merged into weights (VaLoRA §4.4.1).
#pragma once

#include <span>

#include "ops/lora.h"

namespace valora::ops {

// One linear: merged = weight + coefficient · B A, with the A and B of the adapter on this module;
// its scale is not applied. `merged` has the shape, layout and dtype of `weight`, is in floats, and
// may share its data. Null pointers are not allowed.
struct Merge {
  const Weight* weight = nullptr;
  const Weight* merged = nullptr;
  const AdapterWeights* adapter = nullptr;
  int module = 0;
  float coefficient = 1;
};

// Merges all linears in one launch, in fp32, rounded once. All weights must have the same dtype,
// layout and device, and the adapters must touch the modules and be resident; otherwise it throws
// c10::Error.
void merge(std::span<const Merge> merges);

}  // namespace valora::ops
