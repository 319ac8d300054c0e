// y = x Wᵀ + b, and the low-rank products that adapters add (VaLoRA §4.3).
//
// These differentiate with respect to x and to adapters if weights and adapters are plain
// (Weight::plain, or weights of the reference backend); weights in panels refuse an x that wants
// gradients.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "ops/lora.h"
#include "ops/weight.h"

namespace valora::ops {

// Linears of one projection.
inline constexpr size_t kMaxSlices = 3;

// A linear, and the module that adapters know it by; -1: none is served on it.
struct ModuleWeight {
  const Weight* weight = nullptr;
  int module = -1;
};

// Up to kMaxSlices linears of one input, in one launch. x: [T, in] contiguous, of the weights'
// dtype; lora: of a batch of at most T tokens. → of each linear [T, out]
std::vector<at::Tensor> project(const at::Tensor& x, std::span<const ModuleWeight> linears,
                                const LoraBatch& lora = {});
at::Tensor linear(const at::Tensor& x, const ModuleWeight& linear, const LoraBatch& lora);
at::Tensor linear(const at::Tensor& x, const Weight& w);
// silu(gate) · up of two linears of one shape. [T, out]
at::Tensor gated(const at::Tensor& x, const ModuleWeight& gate, const ModuleWeight& up,
                 const LoraBatch& lora = {});
// A linear with a float result: logits keep their precision.
at::Tensor linear_float(const at::Tensor& x, const Weight& w);

}  // namespace valora::ops
