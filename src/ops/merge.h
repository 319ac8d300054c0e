// Adapters merged into weights (VaLoRA §4.4.1).
#pragma once

#include <span>

#include "ops/lora.h"

namespace valora::ops {

// One linear: merged = weight + coefficient · B A. `merged` has the shape, layout and dtype of
// `weight` and may share its data. Null pointers are not allowed.
struct Merge {
  const Weight* weight = nullptr;
  const Weight* merged = nullptr;
  const LoraWeight* adapter = nullptr;
  float coefficient = 1;
};

// Merges all linears in one launch, in fp32, rounded once. All weights must have the same dtype,
// layout and device; otherwise it throws c10::Error.
void merge(std::span<const Merge> merges);

}  // namespace valora::ops
