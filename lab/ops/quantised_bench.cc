#include "lab/ops/quantised_bench.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "lab/ops/cycle.h"
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
    const at::Tensor decoded = q.decoded();
    integers.emplace(copies([&] { return ops::Weight(q, at::kBFloat16, at::kCPU); }));
    byte_inputs.emplace(copies([&] { return ops::Weight(q, at::kBFloat16, at::kCPU, {}, true); }));
    floats.emplace(copies([&] { return ops::Weight(decoded, at::kBFloat16, at::kCPU); }));
  }
};

Measurement measure_quantised(Bench& bench, QuantisedWeights& weights, int64_t tokens) {
  constexpr double kTolerance = 0.02;
  weights.make();
  const auto [in, out] = weights.size;
  const at::Tensor x = normal_tensor({tokens, in}, at::kBFloat16, 1, 2);
  const Work work{static_cast<double>(weights.integers->next().bytes()) +
                      2.0 * static_cast<double>(tokens * (in + out)),
                  2.0 * static_cast<double>(tokens * out * in), false};
  return compete(bench, work,
                 {pure(kOurs, [&] { return ops::linear(x, weights.integers->next()); }),
                  pure("int8 inputs", [&] { return ops::linear(x, weights.byte_inputs->next()); }),
                  pure("bf16", [&] { return ops::linear(x, weights.floats->next()); })},
                 kTolerance);
}

}  // namespace

std::vector<Shape> quantised_shapes(bool quick) {
  // The linears of a 0.5 B model; its output layer always has 8 bits.
  constexpr QuantisedSize kHead{896, 151936};
  std::vector<QuantisedSize> sizes{{896, 896}, {896, 4864}, {4864, 896}, kHead};
  std::vector<int64_t> tokens{1, 2, 4, 8, 16, 64, 512};
  if (quick) sizes = {{896, 4864}, {4864, 896}}, tokens = {1, 8, 64};
  std::vector<Shape> shapes;
  for (const Encoded& encoded : {kInt8, kInt4})
    for (const QuantisedSize size : sizes) {
      const bool head = size.out == kHead.out;
      if (head && encoded.to.bits == 4) continue;
      const auto weights = std::make_shared<QuantisedWeights>(QuantisedWeights{size, encoded});
      for (const int64_t t : tokens) {
        if (head && t > 64) continue;  // steps score few rows
        shapes.push_back(
            {"quantised",
             fmt::format("{} {}x{} tokens {}", encoded.name, size.in, size.out, t),
             {{"encoding", encoded.name}, {"in", size.in}, {"out", size.out}, {"tokens", t}},
             [weights, t](Bench& bench) { return measure_quantised(bench, *weights, t); }});
      }
    }
  return shapes;
}

}  // namespace valora::bench
