#include <array>

#include "kernels/cpu/linear/project.h"
#include "ops/linear_targets.h"
#include "ops/parallel.h"
#include "ops/weight_cpu.h"

namespace valora::ops {
namespace {

static_assert(kMaxSlices == kernels::kMaxSlices);

// ys: one result per weight, in the weights' dtype or float; with kSiluMul only the first.
void run(const at::Tensor& x, std::span<const ModuleWeight> linears, const LoraBatch& lora,
         kernels::Combine combine, std::span<const at::Tensor> ys) {
  bool touched = false;
  for (const ModuleWeight& l : linears) touched |= lora.touches(l.module);
  const auto segments = touched ? lora.segments() : std::span<const kernels::LoraSegment>();
  with_cpu_type(x, [&](auto t) {
    using T = decltype(t);
    std::array<kernels::Slice<T>, kMaxSlices> slices;
    for (size_t s = 0; s < linears.size(); ++s) {
      const Weight& w = *linears[s].weight;
      slices[s] = {panels_of<T>(w), w.bias().defined() ? w.bias().const_data_ptr<float>() : nullptr,
                   nullptr,         nullptr,
                   w.out(),         linears[s].module};
      if (s >= ys.size()) continue;
      if (ys[s].scalar_type() == at::kFloat)
        slices[s].y_float = ys[s].mutable_data_ptr<float>();
      else
        slices[s].y = raw<T>(ys[s]);
      if constexpr (std::is_same_v<T, float>)
        if (combine == kernels::Combine::kSiluMul) slices[s].y = slices[s].y_float;
    }
    kernels::project<T>(raw<T>(x), x.size(0), x.size(1), {slices.data(), linears.size()}, segments,
                        combine, torch_parallel());
  });
}

}  // namespace

std::vector<at::Tensor> project_cpu(const at::Tensor& x, std::span<const ModuleWeight> linears,
                                    const LoraBatch& lora) {
  std::vector<at::Tensor> ys;
  ys.reserve(linears.size());
  for (const ModuleWeight& l : linears)
    ys.push_back(at::empty({x.size(0), l.weight->out()}, x.options()));
  run(x, linears, lora, kernels::Combine::kNone, ys);
  return ys;
}

at::Tensor gated_cpu(const at::Tensor& x, const ModuleWeight& gate, const ModuleWeight& up,
                     const LoraBatch& lora) {
  const ModuleWeight both[] = {gate, up};
  const at::Tensor y = at::empty({x.size(0), gate.weight->out()}, x.options());
  run(x, both, lora, kernels::Combine::kSiluMul, {&y, 1});
  return y;
}

at::Tensor linear_float_cpu(const at::Tensor& x, const Weight& w) {
  const ModuleWeight one{&w};
  const at::Tensor y = at::empty({x.size(0), w.out()}, x.options().dtype(at::kFloat));
  run(x, {&one, 1}, {}, kernels::Combine::kNone, {&y, 1});
  return y;
}

}  // namespace valora::ops
