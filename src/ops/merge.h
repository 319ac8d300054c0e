// Adapters merged into weights (VaLoRA §4.4.1).
#pragma once

#include <span>

#include "ops/lora.h"

namespace valora::ops {

// merged = weight + coefficient · B A, of one linear. `merged` is in weight's form; its data may be
// weight's own.
struct Merge {
  const Weight* weight = nullptr;
  const Weight* merged = nullptr;
  const LoraWeight* adapter = nullptr;
  float coefficient = 1;
};

// All of them in one launch, in fp32, rounded once. They share a dtype, a form and a device.
void merge(std::span<const Merge> merges);

}  // namespace valora::ops
