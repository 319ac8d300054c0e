#include "lab/ops/adapter_copies.h"

#include "kernels/cpu/product/panels.h"
#include "ops/device/cpu_types.h"

namespace valora::bench {

using kernels::bf16;

namespace {

// Pads the rank with zeros to a multiple of `step`.
at::Tensor padded(const at::Tensor& w, int64_t dim, int64_t step) {
  const int64_t rank = w.size(dim), wide = (rank + step - 1) / step * step;
  if (wide == rank) return w;
  auto sizes = w.sizes().vec();
  sizes[dim] = wide;
  const at::Tensor result = at::zeros(sizes, w.options());
  result.narrow(dim, 0, rank).copy_(w);
  return result;
}

}  // namespace

PlainFactors plain_factors(const ops::LoraBatch& lora, size_t segment, int module) {
  TORCH_CHECK(lora.format() == (ops::WeightFormat{ops::WeightForm::kPanels, at::kBFloat16}),
              "the operators of other systems need adapters in bf16 on a CPU");
  const kernels::LoraModule& m = *kernels::touched_module(lora.segments()[segment], module);
  const auto unpacked = [](const kernels::LoraFactor& factor, int64_t n, int64_t k) {
    const at::Tensor values = at::empty({n, k}, at::kBFloat16);
    kernels::unpack_panels(kernels::panels_of_factor<bf16>(factor, n, k), ops::raw<bf16>(values));
    return values;
  };
  return {unpacked(m.a, m.rank, m.in), unpacked(m.b, m.out, m.rank)};
}

ops::AdapterWeights panel_adapter(const PlainFactors& factors, int64_t rank_step, float scale) {
  const auto pack = [](const at::Tensor& w) { return ops::Weight(w, at::kBFloat16, at::kCPU); };
  ops::AdapterWeights adapter(1);
  adapter.set(0, {pack(padded(factors.a, 0, rank_step)), pack(padded(factors.b, 1, rank_step))},
              scale);
  return adapter;
}

}  // namespace valora::bench
