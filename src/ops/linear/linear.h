// Linears y = x Wᵀ + b with the low-rank products of adapters (VaLoRA §4.3). Sums are in fp32.
//
// Differentiable with respect to x and the adapters if weights and adapters are plain
// (Weight::plain, or the reference backend). Weights in panels reject an x that requires gradients.
// Invalid arguments throw c10::Error.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "kernels/types/forms.h"
#include "ops/lora/lora.h"
#include "ops/weights/weight.h"

namespace valora::ops {

using kernels::Gate;

// The most linears in one projection.
inline constexpr size_t kMaxSlices = 3;

// A linear and its module index in adapters; -1: it cannot have adapters.
struct ModuleWeight {
  const Weight* weight = nullptr;
  int module = -1;
};

// Computes up to kMaxSlices linears with the same input in one launch. x: [T, in], contiguous, in
// the dtype of the weights. lora: segments within the T tokens. → [T, out] per linear
std::vector<at::Tensor> project(const at::Tensor& x, std::span<const ModuleWeight> linears,
                                const LoraBatch& lora = {});
at::Tensor linear(const at::Tensor& x, const ModuleWeight& linear, const LoraBatch& lora);
at::Tensor linear(const at::Tensor& x, const Weight& w);
// activation(gate(x)) · up(x) for two linears of the same shape. GPUs support only SiLU. → [T, out]
at::Tensor gated(const at::Tensor& x, const ModuleWeight& gate, const ModuleWeight& up,
                 const LoraBatch& lora = {}, Gate activation = Gate::kSilu);
// A linear with an fp32 result, for logits and partial sums. → float [T, out]. largest: float [T,
// 1], as in rounded_inputs().
at::Tensor linear_float(const at::Tensor& x, const Weight& w, const at::Tensor& largest = {});
at::Tensor linear_float(const at::Tensor& x, const ModuleWeight& linear, const LoraBatch& lora,
                        const at::Tensor& largest = {});

}  // namespace valora::ops
