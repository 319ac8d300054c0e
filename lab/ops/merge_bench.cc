#include "lab/ops/merge_bench.h"

#include <fmt/format.h>

#include "kernels/cpu/merge/merge.h"
#include "lab/ops/random_tensors.h"
#include "ops/device/huge_memory.h"
#include "ops/device/parallel.h"
#include "ops/linear/linear.h"
#include "ops/weights/weight_cpu.h"

namespace valora::bench {
namespace {

using kernels::bf16;

constexpr double kMergeTolerance = 0.02;
constexpr float kMergeCoefficient = 2;

struct MergeShape {
  std::string model;
  int64_t hidden, kv, inner;  // widths of the residual stream, keys and MLP
  int64_t layers, rank;
};

struct MergeSize {
  int64_t out, in;
};

std::vector<MergeSize> linears_of(const MergeShape& s) {
  return {{s.hidden, s.hidden}, {s.kv, s.hidden},    {s.kv, s.hidden},   {s.hidden, s.hidden},
          {s.inner, s.hidden},  {s.inner, s.hidden}, {s.hidden, s.inner}};
}

// One linear and its adapter, in our layout and in ATen's, with the output of the merge.
struct Linear {
  at::Tensor w, a, b, merged;
  ops::Weight base, shadow, panel_a, panel_b;
};

Linear make_linear(const MergeSize& size, int64_t rank) {
  Linear l;
  l.w = weight_tensor(size.out, size.in, at::kBFloat16, 1);
  l.a = weight_tensor(rank, size.in, at::kBFloat16, 2);
  l.b = weight_tensor(size.out, rank, at::kBFloat16, 3);
  l.merged = at::zeros_like(l.w);
  const auto pack = [](const at::Tensor& w) { return ops::Weight(w, at::kBFloat16, at::kCPU); };
  l.base = pack(l.w);
  l.panel_a = pack(l.a);
  l.panel_b = pack(l.b);
  at::Tensor shadow = ops::huge_zeros(l.base.data().numel(), at::kBFloat16);
  shadow.fill_(1);  // touch the pages before timing
  l.shadow = l.base.with_data(shadow);
  return l;
}

// The merged weights of the first layer, concatenated.
template <typename Merged>
at::Tensor first_layer(const std::vector<Linear>& linears, size_t count, const Merged& merged) {
  std::vector<at::Tensor> parts;
  for (size_t i = 0; i < count; ++i) parts.push_back(merged(linears[i]).flatten());
  return at::cat(parts);
}

// Unmerging points every linear back to its base weights, which were never written.
double switch_back_seconds(const std::vector<Linear>& linears) {
  std::vector<ops::Weight> in_use;
  for (const Linear& l : linears) in_use.push_back(l.shadow);
  return fastest(
      [&] {
        for (size_t i = 0; i < linears.size(); ++i) in_use[i] = linears[i].base;
      },
      3);
}

Measurement measure_merge(Bench& bench, const MergeShape& shape) {
  const std::vector<MergeSize> sizes = linears_of(shape);
  std::vector<Linear> linears;
  std::vector<kernels::Merge<bf16>> merges;
  Work work;
  for (int64_t layer = 0; layer < shape.layers; ++layer)
    for (const MergeSize& size : sizes) {
      const Linear& l = linears.emplace_back(make_linear(size, shape.rank));
      merges.push_back({ops::panels_of<bf16>(l.base), ops::raw<bf16>(l.shadow.data()),
                        ops::panels_of<bf16>(l.panel_a), ops::panels_of<bf16>(l.panel_b),
                        kMergeCoefficient});
      work.bytes += static_cast<double>(2 * l.base.bytes() + l.panel_a.bytes() + l.panel_b.bytes());
      work.operations += 2.0 * static_cast<double>(shape.rank * size.out * size.in);
    }
  bench.notes["switch_back_seconds"] = switch_back_seconds(linears);
  const auto ours = [&] { kernels::merge<bf16>(merges, ops::torch_parallel()); };
  const auto aten = [&] {
    for (Linear& l : linears) at::addmm_out(l.merged, l.w, l.b, l.a, 1, kMergeCoefficient);
  };
  const auto our_result = [&] {
    return ours(),
           first_layer(linears, sizes.size(), [](const Linear& l) { return l.shadow.unpacked(); });
  };
  const auto aten_result = [&] {
    return aten(), first_layer(linears, sizes.size(), [](const Linear& l) { return l.merged; });
  };
  return compete(bench, work, {{kOurs, ours, our_result}, {"aten", aten, aten_result}},
                 kMergeTolerance);
}

}  // namespace

std::vector<Shape> merge_shapes(bool quick) {
  std::vector<MergeShape> models;
  for (const int64_t rank : quick ? std::vector<int64_t>{16} : std::vector<int64_t>{8, 16, 32, 64})
    for (MergeShape model : {MergeShape{"0.5B", 896, 128, 4864, 24, rank},
                             MergeShape{"7B", 3584, 512, 18944, 2, rank}}) {
      if (quick && model.model == "7B") continue;
      if (quick) model.layers = 6;
      models.push_back(model);
    }
  std::vector<Shape> shapes;
  for (const MergeShape& s : models)
    shapes.push_back(
        {"merge",
         fmt::format("{} {} layers rank {}", s.model, s.layers, s.rank),
         {{"model", s.model}, {"layers", s.layers}, {"rank", s.rank}, {"hidden", s.hidden}},
         [s](Bench& bench) { return measure_merge(bench, s); }});
  return shapes;
}

}  // namespace valora::bench
