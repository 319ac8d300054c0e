#include "lab/ops/quantised_bench.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "lab/ops/cycle.h"
#include "lab/ops/prepacked_linear.h"
#include "lab/ops/random_tensors.h"
#include "ops/linear/linear.h"
#include "ops/weights/quantised_tensor.h"

namespace valora::bench {
namespace {

struct Encoded {
  const char* name;
  ops::Quantisation to;
};

// The encodings that `--quantization` uses (models/weights/weights.h).
constexpr Encoded kInt8{"int8", {8, 128}}, kInt4{"int4", {4, 32}};

struct QuantisedSize {
  int64_t in, out;
};

// Copies of one matrix as integers and in bf16, with equal values apart from rounding to bf16.
struct QuantisedWeights {
  QuantisedSize size;
  Encoded encoded;
  std::optional<Cycle<ops::Weight>> integers = std::nullopt, byte_inputs = std::nullopt,
                                    floats = std::nullopt;
  at::Tensor decoded;  // fp32

  void make() {
    if (integers) return;
    const ops::QuantisedTensor q =
        ops::quantise(weight_tensor(size.out, size.in, at::kFloat, 1), encoded.to);
    const auto copies = [](const auto& make_one) {
      std::vector<ops::Weight> all{make_one()};
      const auto count = cold_copies(static_cast<int64_t>(all[0].bytes()));
      while (static_cast<int64_t>(all.size()) < count) all.push_back(make_one());
      return all;
    };
    decoded = q.decoded();
    integers.emplace(copies([&] { return ops::Weight(q, at::kBFloat16, at::kCPU); }));
    byte_inputs.emplace(copies([&] { return ops::Weight(q, at::kBFloat16, at::kCPU, {}, true); }));
    floats.emplace(copies([&] { return ops::Weight(decoded, at::kBFloat16, at::kCPU); }));
  }
};

constexpr double kTolerance = 0.02;

Work work_of(QuantisedWeights& weights, int64_t tokens, Arithmetic arithmetic) {
  const auto [in, out] = weights.size;
  return {static_cast<double>(weights.integers->next().bytes()) +
              2.0 * static_cast<double>(tokens * (in + out)),
          2.0 * static_cast<double>(tokens * out * in), arithmetic};
}

Measurement measure_quantised(Bench& bench, QuantisedWeights& weights, int64_t tokens) {
  weights.make();
  const at::Tensor x = normal_tensor({tokens, weights.size.in}, at::kBFloat16, 1, 2);
  return compete(bench, work_of(weights, tokens, Arithmetic::kBf16),
                 {pure(kOurs, [&] { return ops::linear(x, weights.integers->next()); }),
                  pure("bf16", [&] { return ops::linear(x, weights.floats->next()); })},
                 kTolerance);
}

// oneDNN rounds all inputs with one scale, ours has one per 128.
constexpr double kOneScaleTolerance = 0.05;

Measurement measure_rounded(Bench& bench, QuantisedWeights& weights, int64_t tokens) {
  weights.make();
  const at::Tensor x = normal_tensor({tokens, weights.size.in}, at::kBFloat16, 1, 2);
  std::vector<Contender> contenders{
      pure(kOurs, [&] { return ops::linear(x, weights.byte_inputs->next()); }),
      pure("bf16", [&] { return ops::linear(x, weights.floats->next()); })};
  const bool bytes = weights.encoded.to.bits == 8;
  std::optional<Cycle<OnednnBytes>> onednn;
  if (bytes && OnednnBytes::supported()) {
    const double largest = x.abs().max().item<double>();
    std::vector<OnednnBytes> copies;
    for (size_t i = 0; i < weights.byte_inputs->size(); ++i)
      copies.emplace_back(weights.decoded, tokens, largest);
    onednn.emplace(std::move(copies));
    contenders.push_back(pure("onednn", [&] { return onednn->next().product(x); }));
  }
  return compete(bench, work_of(weights, tokens, bytes ? Arithmetic::kBytes : Arithmetic::kNibbles),
                 contenders, bytes ? kOneScaleTolerance : kTolerance);
}

}  // namespace

std::vector<Shape> quantised_shapes(bool quick) {
  // The linears of a 0.5 B model, and a large one of a 7 B model; the output layer always has 8
  // bits.
  constexpr QuantisedSize kHead{896, 151936};
  std::vector<QuantisedSize> sizes{{896, 896}, {896, 4864}, {4864, 896}, {14336, 4096}, kHead};
  std::vector<int64_t> tokens{1, 2, 4, 8, 16, 64, 512};
  if (quick) sizes = {{896, 4864}, {4864, 896}}, tokens = {1, 8, 64};
  std::vector<Shape> shapes;
  using Measure = Measurement (*)(Bench&, QuantisedWeights&, int64_t);
  for (const auto& [operation, measure] :
       {std::pair<const char*, Measure>{"quantised", measure_quantised},
        {"rounded", measure_rounded}})
    for (const Encoded& encoded : {kInt8, kInt4})
      for (const QuantisedSize size : sizes) {
        const bool head = size.out == kHead.out;
        if (head && encoded.to.bits == 4) continue;
        const auto weights = std::make_shared<QuantisedWeights>(QuantisedWeights{size, encoded});
        for (const int64_t t : tokens) {
          if (head && t > 64) continue;  // steps score few rows
          shapes.push_back(
              {operation,
               fmt::format("{} {}x{} tokens {}", encoded.name, size.in, size.out, t),
               {{"encoding", encoded.name}, {"in", size.in}, {"out", size.out}, {"tokens", t}},
               [weights, t, measure](Bench& bench) { return measure(bench, *weights, t); }});
        }
      }
  return shapes;
}

}  // namespace valora::bench
