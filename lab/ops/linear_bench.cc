#include "lab/ops/linear_bench.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "lab/ops/cycle.h"
#include "lab/ops/prepacked_linear.h"
#include "lab/ops/random_tensors.h"
#include "ops/linear/linear.h"

namespace valora::bench {
namespace {

constexpr double kLinearTolerance = 0.02;  // for bf16 results; fp32 gets a thousandth of it

struct LinearSize {
  int64_t in, out;
};

const char* name_of(at::ScalarType dtype) { return dtype == at::kFloat ? "fp32" : "bf16"; }
double tolerance_of(at::ScalarType dtype) {
  return dtype == at::kFloat ? kLinearTolerance / 1000 : kLinearTolerance;
}

Work work_of(int64_t tokens, int64_t out, int64_t in, at::ScalarType dtype) {
  const double element = static_cast<double>(c10::elementSize(dtype));
  return {element * static_cast<double>(out * in + tokens * (in + out)),
          2.0 * static_cast<double>(tokens * out * in),
          dtype == at::kFloat ? Arithmetic::kFloat : Arithmetic::kBf16};
}

// Copies of one matrix in one layout, created by the first shape that needs them and then shared.
struct LinearWeights {
  LinearSize size;
  at::ScalarType dtype;
  std::optional<Cycle<at::Tensor>> plain = std::nullopt;
  std::optional<Cycle<ops::Weight>> packed = std::nullopt;

  void make() {
    if (plain) return;
    const at::Tensor w = weight_tensor(size.out, size.in, dtype, 1);
    const ops::Weight ours(w, dtype, at::kCPU);
    std::vector<at::Tensor> plains{w};
    std::vector<ops::Weight> packs{ours};
    for (int64_t i = 1; i < cold_copies(static_cast<int64_t>(w.nbytes())); ++i) {
      plains.push_back(w.clone());
      packs.emplace_back(w, dtype, at::kCPU);
    }
    plain.emplace(std::move(plains));
    packed.emplace(std::move(packs));
  }
};

Measurement measure_linear(Bench& bench, LinearWeights& weights, int64_t tokens) {
  weights.make();
  const at::Tensor x = normal_tensor({tokens, weights.size.in}, weights.dtype, 1, 2);
  std::vector<Contender> contenders{
      pure(kOurs, [&] { return ops::linear(x, weights.packed->next()); }),
      pure("aten", [&] { return at::linear(x, weights.plain->next()); }),
  };
  std::optional<Cycle<at::Tensor>> prepacked;
  if (has_prepacked_linear(weights.dtype)) {
    std::vector<at::Tensor> packs;
    for (size_t i = 0; i < weights.plain->size(); ++i)
      packs.push_back(prepack_linear(weights.plain->next(), tokens));
    prepacked.emplace(std::move(packs));
    contenders.push_back(
        pure("onednn_prepacked", [&] { return prepacked_linear(x, prepacked->next()); }));
  }
  return compete(bench, work_of(tokens, weights.size.out, weights.size.in, weights.dtype),
                 contenders, tolerance_of(weights.dtype));
}

Measurement measure_gated(Bench& bench, LinearSize size, int64_t tokens, at::ScalarType dtype) {
  LinearWeights gate{size, dtype}, up{size, dtype};
  gate.make();
  up.make();
  const at::Tensor x = normal_tensor({tokens, size.in}, dtype, 1, 2);
  Work work = work_of(tokens, 2 * size.out, size.in, dtype);
  work.bytes -=
      static_cast<double>(tokens * size.out) * static_cast<double>(c10::elementSize(dtype));
  return compete(
      bench, work,
      {pure(kOurs, [&] { return ops::gated(x, {&gate.packed->next()}, {&up.packed->next()}); }),
       pure("aten",
            [&] {
              return at::silu(at::linear(x, gate.plain->next()))
                  .mul_(at::linear(x, up.plain->next()));
            })},
      tolerance_of(dtype));
}

std::string label_of(at::ScalarType dtype, LinearSize size, int64_t tokens) {
  return fmt::format("{} {}x{} tokens {}", name_of(dtype), size.in, size.out, tokens);
}

Json fields_of(at::ScalarType dtype, LinearSize size, int64_t tokens) {
  return {{"dtype", name_of(dtype)}, {"in", size.in}, {"out", size.out}, {"tokens", tokens}};
}

}  // namespace

std::vector<Shape> linear_shapes(bool quick) {
  std::vector<LinearSize> sizes{{896, 896},   {896, 4864},   {4864, 896},
                                {3584, 3584}, {3584, 18944}, {18944, 3584}};
  std::vector<int64_t> tokens{1, 2, 4, 8, 16, 32, 64, 128, 256, 1024};
  if (quick) sizes = {{896, 896}, {4864, 896}, {3584, 3584}}, tokens = {1, 4, 8, 32, 128};
  std::vector<Shape> shapes;
  for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat})
    for (const LinearSize size : sizes) {
      const auto weights = std::make_shared<LinearWeights>(LinearWeights{size, dtype});
      for (const int64_t t : tokens) {
        if (quick && dtype == at::kFloat && (size.in != 896 || t == 4 || t == 32)) continue;
        shapes.push_back(
            {"linear", label_of(dtype, size, t), fields_of(dtype, size, t),
             [weights, t](Bench& bench) { return measure_linear(bench, *weights, t); }});
      }
    }
  return shapes;
}

std::vector<Shape> gated_shapes(bool quick) {
  const std::vector<int64_t> tokens =
      quick ? std::vector<int64_t>{1, 32} : std::vector<int64_t>{1, 8, 32, 128};
  std::vector<Shape> shapes;
  for (const LinearSize size : quick ? std::vector<LinearSize>{{896, 4864}}
                                     : std::vector<LinearSize>{{896, 4864}, {3584, 18944}})
    for (const int64_t t : tokens)
      shapes.push_back(
          {"gated", label_of(at::kBFloat16, size, t), fields_of(at::kBFloat16, size, t),
           [size, t](Bench& bench) { return measure_gated(bench, size, t, at::kBFloat16); }});
  return shapes;
}

}  // namespace valora::bench
