// The implementations of ops/linear/linear.h. The caller has checked the arguments.
#pragma once

#include <optional>

#include "ops/linear/grouped_linear.h"
#include "ops/linear/linear.h"

namespace valora::ops {

// Throws c10::Error unless x and the segments fit these linears, which have one input.
void check_linears(const at::Tensor& x, std::span<const ModuleWeight> linears,
                   const LoraBatch& lora);
// True if other low-rank products than the kernels' are in use (ops/lora/low_rank_products.h).
bool has_low_rank_products();

// inputs: x as the weights take it, rounded if required. The adapters take x itself.
std::vector<at::Tensor> project_cpu(const at::Tensor& x, const at::Tensor& inputs,
                                    std::span<const ModuleWeight> linears, const LoraBatch& lora);
at::Tensor gated_cpu(const at::Tensor& x, const at::Tensor& inputs, const ModuleWeight& gate,
                     const ModuleWeight& up, const LoraBatch& lora, Gate activation);
// largest: as in linear_float().
at::Tensor linear_float_cpu(const at::Tensor& x, const Weight& w, const at::Tensor& largest);
// The linears with their low-rank products but without output changes: float [T, out] per linear.
std::vector<at::Tensor> sums_cpu(const at::Tensor& x, const at::Tensor& inputs,
                                 std::span<const ModuleWeight> linears, const LoraBatch& lora,
                                 const at::Tensor& largest);
// All groups in one launch, in `dtype`: x's or, if not gated, float. activation: gated products.
// Weights are panels, inputs not rounded.
at::Tensor grouped_cpu(const at::Tensor& x, std::span<const LinearGroup> groups,
                       std::optional<Gate> activation, at::ScalarType dtype);
at::Tensor weighted_rows_cpu(const at::Tensor& x, const at::Tensor& rows,
                             const at::Tensor& weights);
// activation(gate) · up, rounded to the dtype. gate_aten() is differentiable.
at::Tensor gate_cpu(Gate activation, const at::Tensor& gate, const at::Tensor& up,
                    at::ScalarType dtype);
at::Tensor gate_aten(Gate activation, const at::Tensor& gate, const at::Tensor& up);

std::vector<at::Tensor> project_cuda(const at::Tensor& x, const at::Tensor& inputs,
                                     std::span<const ModuleWeight> linears, const LoraBatch& lora);
at::Tensor gated_cuda(const at::Tensor& x, const at::Tensor& inputs, const ModuleWeight& gate,
                      const ModuleWeight& up, const LoraBatch& lora, Gate activation);
at::Tensor linear_float_cuda(const at::Tensor& x, const at::Tensor& inputs,
                             const ModuleWeight& linear, const LoraBatch& lora);

std::vector<at::Tensor> project_aten(const at::Tensor& x, const at::Tensor& inputs,
                                     std::span<const ModuleWeight> linears, const LoraBatch& lora);
at::Tensor gated_aten(const at::Tensor& x, const at::Tensor& inputs, const ModuleWeight& gate,
                      const ModuleWeight& up, const LoraBatch& lora, Gate activation);
at::Tensor linear_float_aten(const at::Tensor& x, const Weight& w);
std::vector<at::Tensor> sums_aten(const at::Tensor& x, const at::Tensor& inputs,
                                  std::span<const ModuleWeight> linears, const LoraBatch& lora);

}  // namespace valora::ops
