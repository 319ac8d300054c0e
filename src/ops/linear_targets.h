// The implementations of ops/linear.h. The caller has checked the arguments.
#pragma once

#include "ops/linear.h"

namespace valora::ops {

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
