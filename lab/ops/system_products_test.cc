// Other systems' operators must give the same results as the engine's own.
#include "lab/ops/system_products.h"

#include <gtest/gtest.h>

#include <array>

#include "lab/ops/random_tensors.h"
#include "ops/linear/linear.h"

namespace valora::bench {
namespace {

using ops::AdapterWeights;
using ops::LoraBatch;
using ops::ModuleWeight;
using ops::Weight;

constexpr int64_t kIn = 130, kOut = 200, kTokens = 60;

at::Tensor random(at::IntArrayRef sizes, uint64_t seed) {
  return normal_tensor(sizes, at::kBFloat16, 0.3, seed);
}
Weight panels(int64_t out, int64_t in, uint64_t seed) {
  return Weight(random({out, in}, seed), at::kBFloat16, at::kCPU);
}

// An adapter on two of three modules.
AdapterWeights adapter(int64_t rank, uint64_t seed) {
  AdapterWeights weights(3);
  for (const int module : {0, 2})
    weights.set(module, {panels(rank, kIn, seed + module), panels(kOut, rank, seed + 10 + module)},
                0.5f);
  return weights;
}

struct Others {
  explicit Others(std::unique_ptr<ops::LowRankProducts> products) : products(std::move(products)) {
    ops::set_low_rank_products(this->products.get());
  }
  ~Others() { ops::set_low_rank_products(nullptr); }
  std::unique_ptr<ops::LowRankProducts> products;
};

class SystemProducts : public ::testing::TestWithParam<int> {
 protected:
  static std::unique_ptr<ops::LowRankProducts> products() {
    switch (GetParam()) {
      case 0: return slora_products();
      case 1: return punica_products();
      default: return dlora_products();
    }
  }
  // Prompts, single tokens, an adapter used twice, a sum of two adapters, and tokens without any.
  LoraBatch batch() const {
    LoraBatch lora;
    lora.add(0, 20, low, 1);
    lora.add(20, 21, middle, 2);
    lora.add(21, 24, high, -1);
    lora.add(24, 50, high, -1);
    lora.add(22, 40, low, 0.5f);
    lora.add(55, 56, low, 1);
    return lora;
  }
  const AdapterWeights low = adapter(3, 100), middle = adapter(16, 200), high = adapter(65, 300);
  const Weight first = panels(kOut, kIn, 1), second = panels(kOut, kIn, 2);
  const at::Tensor x = random({kTokens, kIn}, 3);
};

void expect_near(const at::Tensor& given, const at::Tensor& expected) {
  EXPECT_EQ(given.scalar_type(), at::kBFloat16);
  const at::Tensor wide = expected.to(at::kDouble);
  EXPECT_GT(wide.abs().max().item<double>(), 1);
  EXPECT_LE((given.to(at::kDouble) - wide).abs().max().item<double>(),
            0.02 * (1 + wide.abs().max().item<double>()));
}

TEST_P(SystemProducts, MatchTheEngine) {
  const LoraBatch lora = batch();
  const ModuleWeight linears[] = {{&first, 0}, {&second, 1}, {&second, 2}};
  const auto own = ops::project(x, linears, lora);
  const at::Tensor own_gated = ops::gated(x, linears[0], linears[2], lora);
  const Others others(products());
  for (int again = 0; again < 2; ++again) {
    const auto theirs = ops::project(x, linears, lora);
    for (size_t i = 0; i < own.size(); ++i) expect_near(theirs[i], own[i]);
    EXPECT_TRUE(at::equal(theirs[1], own[1])) << "no adapter touches it";
    expect_near(ops::gated(x, linears[0], linears[2], lora), own_gated);
  }
}

TEST_P(SystemProducts, UseTheAdaptersOfTheCurrentBatch) {
  LoraBatch one;
  one.add(0, 2, middle, 1);
  const ModuleWeight linear{&first, 0};
  const at::Tensor own = ops::linear(x, linear, one), base = ops::linear(x, linear, {});
  const Others others(products());
  (void)ops::linear(x, linear, batch());
  expect_near(ops::linear(x, linear, one), own);
  EXPECT_FALSE(at::equal(ops::linear(x, linear, one), base));
  EXPECT_TRUE(at::equal(ops::linear(x, linear, {}), base));
}

INSTANTIATE_TEST_SUITE_P(All, SystemProducts, ::testing::Values(0, 1, 2), [](const auto& system) {
  return std::string(std::array{"slora", "punica", "dlora"}[system.param]);
});

}  // namespace
}  // namespace valora::bench
