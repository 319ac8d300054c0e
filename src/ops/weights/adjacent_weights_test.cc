// Weights that are adjacent on a GPU give the same products as separate ones, with adapters, biases
// and merges. Skipped without a GPU, except for what runs on CPUs.
#include "ops/weights/adjacent_weights.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <array>

#include "ops/device/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/merge/merge.h"
#include "ops/testing/platforms.h"

namespace valora::ops {
namespace {

constexpr int64_t kInputs = 64;
constexpr std::array<int64_t, 3> kOutputs = {96, 32, 32};

class Adjacent : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (!testing_support::has_gpu()) GTEST_SKIP() << "no GPU";
    for (const int64_t rank : {3, 16}) {
      AdapterWeights adapter(kOutputs.size());
      for (size_t i = 0; i < kOutputs.size(); ++i)
        if (rank > 3 || i != 1)  // the first adapter does not touch module 1
          adapter.set(static_cast<int>(i),
                      {Weight(on_gpu({rank, kInputs}) * 0.2, dtype(), gpu()),
                       Weight(on_gpu({kOutputs[i], rank}) * 0.2, dtype(), gpu())},
                      0.5f);
      adapters_.push_back(std::move(adapter));
    }
  }
  static at::Device gpu() { return {at::kCUDA, 0}; }
  at::ScalarType dtype() const { return GetParam(); }
  at::Tensor on_gpu(at::IntArrayRef sizes) {
    return at::randn(sizes, generator_, at::kFloat).to(dtype()).to(gpu());
  }
  // Random weights, each in memory of its own.
  std::vector<Weight> make(bool bias) {
    std::vector<Weight> weights;
    for (const int64_t out : kOutputs)
      weights.emplace_back(on_gpu({out, kInputs}) * 0.1, dtype(), gpu(),
                           bias ? on_gpu({out}) : at::Tensor());
    return weights;
  }
  static std::vector<Weight> placed(std::vector<Weight> weights) {
    std::vector<Weight*> each;
    for (Weight& w : weights) each.push_back(&w);
    place_adjacent(each);
    return weights;
  }
  static std::vector<ModuleWeight> modules(const std::vector<Weight>& weights) {
    std::vector<ModuleWeight> all;
    for (size_t i = 0; i < weights.size(); ++i) all.push_back({&weights[i], static_cast<int>(i)});
    return all;
  }
  // Results may differ because sums are taken in another order.
  void expect_near(const at::Tensor& a, const at::Tensor& b) const {
    ASSERT_EQ(a.sizes(), b.sizes());
    const double bound = dtype() == at::kFloat ? 1e-5 : 2e-2;
    const at::Tensor x = a.to(at::kCPU).to(at::kDouble), y = b.to(at::kCPU).to(at::kDouble);
    EXPECT_TRUE(((x - y).abs() <= bound * (1 + y.abs())).all().item<bool>())
        << (x - y).abs().max().item<double>();
  }

  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(11);
  std::vector<AdapterWeights> adapters_;
};
INSTANTIATE_TEST_SUITE_P(Dtypes, Adjacent, ::testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& info) { return std::string(at::toString(info.param)); });

TEST_P(Adjacent, KeepValuesAndBiases) {
  for (const bool bias : {false, true}) {
    const std::vector<Weight> apart = make(bias), beside = placed(apart);
    EXPECT_FALSE(as_one(modules(apart)));
    const auto one = as_one(modules(beside));
    ASSERT_TRUE(one);
    EXPECT_EQ(one->weight.sizes(), at::IntArrayRef({160, kInputs}));
    EXPECT_EQ(one->bias.defined(), bias);
    for (size_t i = 0; i < apart.size(); ++i) {
      EXPECT_TRUE(at::equal(beside[i].data(), apart[i].data()));
      EXPECT_EQ(beside[i].bytes(), apart[i].bytes());
      if (bias) {
        EXPECT_TRUE(at::equal(beside[i].bias(), apart[i].bias()));
      }
    }
    const std::array<ModuleWeight, 2> last = {ModuleWeight{&beside[1]}, {&beside[2]}},
                                      with_a_gap = {ModuleWeight{&beside[0]}, {&beside[2]}};
    EXPECT_TRUE(as_one(last));
    EXPECT_FALSE(as_one(with_a_gap));
  }
}

TEST_P(Adjacent, ProjectionsEqualSeparateWeights) {
  for (const bool bias : {false, true}) {
    const std::vector<Weight> apart = make(bias), beside = placed(apart);
    for (const int64_t tokens : {1, 3, 40}) {
      const at::Tensor x = on_gpu({tokens, kInputs});
      LoraBatch none, one, both;
      one.add(0, tokens, adapters_[0], 1);
      both.add(0, (tokens + 1) / 2, adapters_[1], 0.7f);
      both.add(0, tokens, adapters_[0], -1);
      for (const LoraBatch* lora : {&none, &one, &both}) {
        const auto expected = project(x, modules(apart), *lora),
                   actual = project(x, modules(beside), *lora);
        for (size_t i = 0; i < actual.size(); ++i) expect_near(actual[i], expected[i]);
        EXPECT_TRUE(actual[2].is_alias_of(actual[0])) << "one product";
        EXPECT_EQ(actual[1].stride(0), 160);
        EXPECT_FALSE(expected[2].is_alias_of(expected[0]));
      }
    }
  }
}

TEST_P(Adjacent, GatedEqualsSeparateWeights) {
  for (const bool bias : {false, true}) {
    std::vector<Weight> apart = make(bias);
    apart.erase(apart.begin());
    const std::vector<Weight> beside = placed(apart);
    const at::Tensor x = on_gpu({5, kInputs});
    AdapterWeights adapter(2);
    for (int i = 0; i < 2; ++i)
      adapter.set(i,
                  {Weight(on_gpu({8, kInputs}) * 0.2, dtype(), gpu()),
                   Weight(on_gpu({32, 8}) * 0.2, dtype(), gpu())},
                  1);
    LoraBatch lora;
    lora.add(1, 4, adapter, 1);
    for (const LoraBatch& each : {LoraBatch(), lora})
      expect_near(gated(x, {&beside[0], 0}, {&beside[1], 1}, each),
                  gated(x, {&apart[0], 0}, {&apart[1], 1}, each));
  }
}

TEST_P(Adjacent, MergeAndRestoreIndividually) {
  const std::vector<Weight> apart = make(true), beside = placed(apart);
  const at::Tensor x = on_gpu({3, kInputs}), before = beside[1].data().clone();
  std::vector<Weight> shadows;  // placed as the mode switcher does
  const at::Tensor shadow = at::zeros({160 * kInputs}, before.options());
  int64_t row = 0;
  for (const Weight& w : beside) {
    shadows.push_back(
        w.with_data(shadow.narrow(0, row * kInputs, w.out() * kInputs).view({w.out(), kInputs})));
    row += w.out();
  }
  std::vector<Merge> into_shadow, in_place, separate;
  std::vector<Weight> merged;
  for (const Weight& w : apart) merged.push_back(w.with_data(at::empty_like(w.data())));
  for (int i = 0; i < 3; ++i) {
    into_shadow.push_back({&beside[i], &shadows[i], &adapters_[1], i, 0.5f});
    in_place.push_back({&beside[i], &beside[i], &adapters_[1], i, 0.5f});
    separate.push_back({&apart[i], &merged[i], &adapters_[1], i, 0.5f});
  }
  merge(into_shadow);
  merge(separate);
  EXPECT_TRUE(as_one(modules(shadows))) << "one product of merged weights";
  EXPECT_TRUE(at::equal(beside[1].data(), before));
  const auto expected = project(x, modules(merged));
  const auto check = [&](const std::vector<Weight>& weights) {
    const auto actual = project(x, modules(weights));
    for (size_t i = 0; i < actual.size(); ++i) expect_near(actual[i], expected[i]);
  };
  check(shadows);
  merge(in_place);
  check(beside);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(at::equal(beside[i].data(), merged[i].data()));
    Weight(beside[i]).refill(apart[i].data());
  }
  EXPECT_TRUE(at::equal(beside[1].data(), before));
  // An adapter that does not change one of them.
  const std::vector<Weight> mixed = {shadows[0], beside[1], shadows[2]};
  EXPECT_FALSE(as_one(modules(mixed)));
  expect_near(project(x, modules(mixed))[2], expected[2]);
}

TEST_P(Adjacent, UnlikeWeightsStaySeparate) {
  const auto stays = [&](std::vector<Weight> weights) {
    const auto before = weights[0].data().const_data_ptr();
    const std::vector<Weight> after = placed(std::move(weights));
    return after[0].data().const_data_ptr() == before && !as_one(modules(after));
  };
  const auto weight = [&](int64_t out, int64_t in, const at::Tensor& bias = {}) {
    return Weight(on_gpu({out, in}), dtype(), gpu(), bias);
  };
  EXPECT_TRUE(stays({weight(32, 64), weight(32, 32)})) << "inputs";
  EXPECT_TRUE(stays({weight(32, 64), weight(32, 64, on_gpu({32}))})) << "a bias";
  EXPECT_TRUE(stays({weight(3, 5), weight(3, 5)})) << "alignment";
}

TEST_P(Adjacent, NormalisesHeadsInPlace) {
  const std::vector<Weight> beside = placed(make(false));
  const at::Tensor x = on_gpu({4, kInputs}), weight = on_gpu({16});
  for (const at::Tensor& rows : project(x, modules(beside))) {
    const at::Tensor heads = rows.view({4, -1, 16});
    EXPECT_FALSE(heads.is_contiguous());
    const at::Tensor normed = rms_norm(heads, weight, 1e-6);
    EXPECT_TRUE(normed.is_contiguous());
    EXPECT_TRUE(at::equal(normed, rms_norm(heads.contiguous(), weight, 1e-6)));
  }
}

TEST(AdjacentOnCpus, LeavesPanelsUnchanged) {
  const auto weight = [] { return Weight(at::ones({32, 64}), at::kFloat, at::kCPU); };
  std::array<Weight, 2> weights = {weight(), weight()};
  const auto before = weights[0].data().const_data_ptr();
  place_adjacent(std::array{&weights[0], &weights[1]});
  EXPECT_EQ(weights[0].data().const_data_ptr(), before);
  EXPECT_EQ(weights[0].form(), WeightForm::kPanels);
}

}  // namespace
}  // namespace valora::ops
