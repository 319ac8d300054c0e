// For tests: runs a case through the public operations and compares the results with the reference.
#pragma once

#include <gtest/gtest.h>

#include "ops/conformance/world.h"

namespace valora::ops::conformance {

// |actual − expected| <= absolute + relative · |expected|. Results have a standard deviation
// near 1.
struct Tolerance {
  double relative = 0, absolute = 0;
};

struct Count {
  int64_t cases = 0, outputs = 0;
};

class Checker {
 public:
  Checker(World& world, at::ScalarType dtype, Tolerance tolerance, Count& count)
      : world_(world), dtype_(dtype), tolerance_(tolerance), count_(count) {}

  void check(const Case& c) {
    SCOPED_TRACE(::testing::Message() << c.name << ", " << c.tokens << " tokens, " << c.in << " to "
                                      << ::testing::PrintToString(c.outs) << ", " << c.uses.size()
                                      << " segments" << (c.gated ? ", gated" : ""));
    const auto& linears = world_.linears(c);
    std::vector<AdapterWeights> adapters;  // one per use
    std::vector<at::Tensor> expected;
    for (const at::Tensor& product : linears.base->products)
      expected.push_back(product.narrow(0, 0, c.tokens).clone());
    for (const Use& use : c.uses) {
      AdapterWeights& adapter = adapters.emplace_back(c.outs.size());
      for (size_t s = 0; s < c.outs.size(); ++s)
        add(c, use, s, adapter, expected[s], linears.base->x);
    }
    LoraBatch lora;
    for (size_t u = 0; u < c.uses.size(); ++u)
      lora.add(c.uses[u].begin, c.uses[u].end, adapters[u], c.uses[u].coefficient);
    std::vector<ModuleWeight> modules;
    for (const Weight& weight : linears.weights)
      modules.push_back({&weight, static_cast<int>(modules.size())});
    const at::Tensor x = linears.x.narrow(0, 0, c.tokens);
    if (c.gated) {
      expect_gated(gated(x, modules[0], modules[1], lora), expected[0], expected[1]);
    } else if (c.outs.size() == 1) {
      expect_close(linear(x, modules[0], lora), expected[0], limit(expected[0]), 0);
    } else {
      const auto actual = project(x, modules, lora);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t s = 0; s < actual.size(); ++s)
        expect_close(actual[s], expected[s], limit(expected[s]), s);
    }
    ++count_.cases;
    if (world_.pairs() > 60) world_.forget_pairs();
  }

 private:
  void add(const Case& c, const Use& use, size_t s, AdapterWeights& adapter, at::Tensor& expected,
           const at::Tensor& x) {
    const int64_t rank = c.adapters[use.adapter].ranks[s], tokens = use.end - use.begin;
    if (rank == 0) return;
    const LowRankPair& pair = world_.pair(c.in, c.outs[s], rank, use.adapter, s);
    adapter.set(static_cast<int>(s), pair.weight, 1);
    if (tokens == 0) return;
    const auto wide = [](const at::Tensor& t) { return t.to(at::kDouble); };
    // Intermediate values are rounded to the dtype, as in Punica's reference.
    const at::Tensor low = at::mm(wide(x.narrow(0, use.begin, tokens)), wide(pair.a).t())
                               .mul_(use.coefficient)
                               .to(dtype_);
    expected.narrow(0, use.begin, tokens).add_(at::mm(wide(low), wide(pair.b).t()));
  }

  at::Tensor limit(const at::Tensor& expected) const {
    return expected.abs() * tolerance_.relative + tolerance_.absolute;
  }

  // Propagates the error limits of gate and up to silu(gate) · up.
  void expect_gated(const at::Tensor& actual, const at::Tensor& gate, const at::Tensor& up) {
    const at::Tensor silu = gate * at::sigmoid(gate), expected = silu * up;
    expect_close(actual, expected,
                 limit(gate) * up.abs() * 1.1 + limit(up) * silu.abs() + limit(expected), 0);
  }

  void expect_close(const at::Tensor& actual, const at::Tensor& expected, const at::Tensor& limit,
                    size_t slice) {
    ASSERT_EQ(actual.sizes(), expected.sizes());
    ASSERT_EQ(actual.scalar_type(), dtype_);
    const at::Tensor excess = (actual.to(at::kCPU, at::kDouble) - expected).abs_().sub_(limit);
    count_.outputs += actual.numel();
    // Counts values outside the limit, NaN included.
    const int64_t wrong = excess.numel() - (excess <= 0).sum().item<int64_t>();
    if (wrong == 0) return;
    const int64_t at = excess.nan_to_num(1e30).argmax().item<int64_t>(), columns = actual.size(1);
    ADD_FAILURE() << wrong << " of " << actual.numel() << " outputs of slice " << slice
                  << " are off; the worst, token " << at / columns << " output " << at % columns
                  << ", is " << actual[at / columns][at % columns].item<double>() << " instead of "
                  << expected[at / columns][at % columns].item<double>();
  }

  World& world_;
  at::ScalarType dtype_;
  Tolerance tolerance_;
  Count& count_;
};

}  // namespace valora::ops::conformance
