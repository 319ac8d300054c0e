#include <ATen/CPUGeneratorImpl.h>

#include "ops/linear/linear_targets.h"

namespace valora::ops {
namespace {

at::Tensor product(const at::Tensor& x, const Weight& w) {
  return at::linear(x, w.data(),
                    w.bias().defined() ? std::optional<at::Tensor>(w.bias()) : std::nullopt);
}

uint64_t seed_of(const Dropout& dropout, int module, size_t segment) {
  uint64_t seed = dropout.seed ^ (static_cast<uint64_t>(module) << 32 | segment);
  for (const int shift : {33, 29, 32}) seed = (seed ^ seed >> shift) * 0xff51afd7ed558ccdULL;
  return seed;
}

at::Tensor dropped(const at::Tensor& x, const Dropout& dropout, int module, size_t segment) {
  if (dropout.probability <= 0) return x;
  const double kept = 1 - dropout.probability;
  at::Generator generator =
      at::make_generator<at::CPUGeneratorImpl>(seed_of(dropout, module, segment));
  return x * at::empty(x.sizes(), x.options().device(at::kCPU))
                 .bernoulli_(kept, generator)
                 .div_(kept)
                 .to(x.device());
}

// wide: return the result in float.
at::Tensor adapted(const at::Tensor& x, const at::Tensor& inputs, const ModuleWeight& linear,
                   const LoraBatch& lora, bool wide = false) {
  at::Tensor y = product(inputs, *linear.weight);
  if (wide) y = y.to(at::kFloat);
  if (!lora.touches(linear.module)) return y;
  const auto segments = lora.segments();
  // Several segments may cover one token: round only their sum.
  if (segments.size() > 1) y = y.to(at::kFloat);
  for (size_t i = 0; i < segments.size(); ++i) {
    const kernels::LoraSegment& segment = segments[i];
    const LoraWeight* weight = lora.adapter(i).find(linear.module);
    const int64_t tokens = segment.token_end - segment.token_begin;
    if (!weight || tokens == 0) continue;
    // In the backward pass, an in-place write to a narrowed tensor costs a copy, so narrow only if
    // needed.
    const auto rows = [&](const at::Tensor& t) {
      return tokens == x.size(0) ? t : t.narrow(0, segment.token_begin, tokens);
    };
    const at::Tensor low = product(dropped(rows(x), lora.dropout(), linear.module, i), weight->a);
    rows(y).add_(product(low, weight->b),
                 segment.coefficient * lora.adapter(i).module(linear.module)->scale);
  }
  return wide ? y : y.to(x.scalar_type());
}

}  // namespace

std::vector<at::Tensor> project_aten(const at::Tensor& x, const at::Tensor& inputs,
                                     std::span<const ModuleWeight> linears, const LoraBatch& lora) {
  std::vector<at::Tensor> ys;
  for (const ModuleWeight& l : linears) ys.push_back(adapted(x, inputs, l, lora));
  return ys;
}

at::Tensor gate_aten(Gate activation, const at::Tensor& gate, const at::Tensor& up) {
  return (activation == Gate::kSilu ? at::silu(gate) : at::gelu(gate, "tanh")) * up;
}

at::Tensor gated_aten(const at::Tensor& x, const at::Tensor& inputs, const ModuleWeight& gate,
                      const ModuleWeight& up, const LoraBatch& lora, Gate activation) {
  return gate_aten(activation, adapted(x, inputs, gate, lora), adapted(x, inputs, up, lora));
}

std::vector<at::Tensor> sums_aten(const at::Tensor& x, const at::Tensor& inputs,
                                  std::span<const ModuleWeight> linears, const LoraBatch& lora) {
  std::vector<at::Tensor> sums;
  for (const ModuleWeight& l : linears) sums.push_back(adapted(x, inputs, l, lora, /*wide=*/true));
  return sums;
}

at::Tensor linear_float_aten(const at::Tensor& x, const Weight& w) {
  return product(x, w).to(at::kFloat);
}

}  // namespace valora::ops
