#include <algorithm>
#include <array>
#include <atomic>
#include <optional>

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/linear/project.h"
#include "ops/device/parallel.h"
#include "ops/linear/linear_targets.h"
#include "ops/lora/low_rank_products.h"
#include "ops/weights/weight_cpu.h"

namespace valora::ops {
namespace {

static_assert(kMaxSlices == kernels::kMaxSlices);

std::atomic<LowRankProducts*> others = nullptr;

bool touches(std::span<const ModuleWeight> linears, const LoraBatch& lora) {
  return std::ranges::any_of(linears,
                             [&](const ModuleWeight& l) { return lora.touches(l.module); });
}

// The replacement for the kernels' low-rank products, if one is set and these linears have
// adapters; otherwise null.
LowRankProducts* other_products(std::span<const ModuleWeight> linears, const LoraBatch& lora) {
  LowRankProducts* const other = others;
  return other && touches(linears, lora) ? other : nullptr;
}

template <typename T>
kernels::Slice<T> slice_of(const ModuleWeight& linear) {
  const Weight& w = *linear.weight;
  return {panels_of<T>(w), w.bias().defined() ? w.bias().const_data_ptr<float>() : nullptr,
          nullptr,         nullptr,
          w.out(),         linear.module,
          integers_of(w)};
}

// ys: one result per weight, in the weights' dtype or float; for a gated product a single one.
void run(const at::Tensor& x, const at::Tensor& inputs, std::span<const ModuleWeight> linears,
         const LoraBatch& lora, std::optional<Gate> gate, std::span<const at::Tensor> ys,
         const at::Tensor& largest = {}) {
  const auto segments =
      touches(linears, lora) ? lora.segments() : std::span<const kernels::LoraSegment>();
  with_cpu_type(x, [&](auto t) {
    using T = decltype(t);
    std::array<kernels::Slice<T>, kMaxSlices> slices;
    for (size_t s = 0; s < linears.size(); ++s) {
      slices[s] = slice_of<T>(linears[s]);
      if (s >= ys.size()) continue;
      if (ys[s].scalar_type() == at::kFloat)
        slices[s].y_float = ys[s].mutable_data_ptr<float>();
      else
        slices[s].y = raw<T>(ys[s]);
      if constexpr (std::is_same_v<T, float>)
        if (gate) slices[s].y = slices[s].y_float;
    }
    kernels::project<T>(raw<T>(x), x.size(0), x.size(1), {slices.data(), linears.size()}, segments,
                        gate, torch_parallel(), raw<T>(inputs),
                        largest.defined() ? largest.const_data_ptr<float>() : nullptr);
  });
}

// The linears in fp32, with low-rank products computed by `products` instead of the kernels.
std::vector<at::Tensor> sums_by(LowRankProducts& products, const at::Tensor& x,
                                const at::Tensor& inputs, std::span<const ModuleWeight> linears,
                                const LoraBatch& lora, const at::Tensor& largest = {}) {
  std::vector<at::Tensor> sums;
  for (const ModuleWeight& l : linears)
    sums.push_back(at::empty({x.size(0), l.weight->out()}, x.options().dtype(at::kFloat)));
  run(inputs, inputs, linears, {}, std::nullopt, sums, largest);
  for (size_t i = 0; i < linears.size(); ++i)
    if (lora.touches(linears[i].module)) products.add(x, lora, linears[i].module, sums[i]);
  return sums;
}

}  // namespace

std::vector<at::Tensor> sums_cpu(const at::Tensor& x, const at::Tensor& inputs,
                                 std::span<const ModuleWeight> linears, const LoraBatch& lora,
                                 const at::Tensor& largest) {
  if (LowRankProducts* const other = other_products(linears, lora))
    return sums_by(*other, x, inputs, linears, lora, largest);
  std::vector<at::Tensor> sums;
  for (const ModuleWeight& l : linears)
    sums.push_back(at::empty({x.size(0), l.weight->out()}, x.options().dtype(at::kFloat)));
  run(x, inputs, linears, lora, std::nullopt, sums, largest);
  return sums;
}

at::Tensor gate_cpu(Gate activation, const at::Tensor& gate, const at::Tensor& up,
                    at::ScalarType dtype) {
  const at::Tensor y = at::empty(gate.sizes(), gate.options().dtype(dtype));
  with_cpu_type(dtype, [&](auto t) {
    using T = decltype(t);
    const int64_t width = y.size(1);
    torch_parallel()(0, y.size(0), 1, [&](int64_t begin, int64_t end) {
      const int64_t at = begin * width;
      kernels::gate_rows(activation, gate.const_data_ptr<float>() + at,
                         up.const_data_ptr<float>() + at, end - begin, width, raw<T>(y) + at,
                         width);
    });
  });
  return y;
}

void set_low_rank_products(LowRankProducts* products) { others = products; }
bool has_low_rank_products() { return others != nullptr; }

at::Tensor grouped_cpu(const at::Tensor& x, std::span<const LinearGroup> groups,
                       std::optional<Gate> activation, at::ScalarType dtype) {
  const int64_t width = x.size(1), out = groups[0].linear.weight->out();
  const at::Tensor y = at::empty({x.size(0), out}, x.options().dtype(dtype));
  with_cpu_type(x, [&](auto t) {
    using T = decltype(t);
    std::vector<std::array<kernels::Slice<T>, 2>> slices(groups.size());
    std::vector<kernels::RowGroup<T>> rows(groups.size());
    for (size_t i = 0; i < groups.size(); ++i) {
      const LinearGroup& group = groups[i];
      slices[i][0] = slice_of<T>(group.linear);
      if (dtype == x.scalar_type())
        slices[i][0].y = raw<T>(y) + group.begin * out;
      else
        slices[i][0].y_float = y.mutable_data_ptr<float>() + group.begin * out;
      if (activation) slices[i][1] = slice_of<T>(group.up);
      rows[i] = {raw<T>(x) + group.begin * width,
                 group.end - group.begin,
                 {slices[i].data(), activation ? size_t{2} : size_t{1}},
                 group.lora->segments()};
    }
    kernels::project_groups<T>(rows, width, activation, torch_parallel());
  });
  return y;
}

at::Tensor weighted_rows_cpu(const at::Tensor& x, const at::Tensor& rows,
                             const at::Tensor& weights) {
  const at::Tensor y = at::empty({rows.size(0), x.size(1)}, x.options());
  with_cpu_type(x, [&](auto t) {
    using T = decltype(t);
    kernels::weighted_rows<T>(raw<T>(x), rows.const_data_ptr<int64_t>(),
                              weights.const_data_ptr<float>(), rows.size(0), rows.size(1),
                              x.size(1), raw<T>(y), torch_parallel());
  });
  return y;
}

std::vector<at::Tensor> project_cpu(const at::Tensor& x, const at::Tensor& inputs,
                                    std::span<const ModuleWeight> linears, const LoraBatch& lora) {
  std::vector<at::Tensor> ys;
  if (LowRankProducts* const other = other_products(linears, lora)) {
    for (const at::Tensor& sums : sums_by(*other, x, inputs, linears, lora))
      ys.push_back(sums.to(x.scalar_type()));
    return ys;
  }
  ys.reserve(linears.size());
  for (const ModuleWeight& l : linears)
    ys.push_back(at::empty({x.size(0), l.weight->out()}, x.options()));
  run(x, inputs, linears, lora, std::nullopt, ys);
  return ys;
}

at::Tensor gated_cpu(const at::Tensor& x, const at::Tensor& inputs, const ModuleWeight& gate,
                     const ModuleWeight& up, const LoraBatch& lora, Gate activation) {
  const ModuleWeight both[] = {gate, up};
  if (LowRankProducts* const other = other_products(both, lora)) {
    const std::vector<at::Tensor> sums = sums_by(*other, x, inputs, both, lora);
    return gate_cpu(activation, sums[0], sums[1], x.scalar_type());
  }
  const at::Tensor y = at::empty({x.size(0), gate.weight->out()}, x.options());
  run(x, inputs, both, lora, activation, {&y, 1});
  return y;
}

at::Tensor linear_float_cpu(const at::Tensor& x, const Weight& w, const at::Tensor& largest) {
  const ModuleWeight one{&w};
  const at::Tensor y = at::empty({x.size(0), w.out()}, x.options().dtype(at::kFloat));
  run(x, x, {&one, 1}, {}, std::nullopt, {&y, 1}, largest);
  return y;
}

}  // namespace valora::ops
