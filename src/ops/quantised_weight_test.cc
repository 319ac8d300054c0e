// Linears with weights in integers, against ATen on the decoded values.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "ops/backend.h"
#include "ops/linear.h"
#include "ops/merge.h"
#include "ops/quantise.h"
#include "ops/weight_cpu.h"

namespace valora::ops {
namespace {

struct Setting {
  Backend backend;
  at::ScalarType dtype;
  int bits;
  bool minimums = false;  // instead of zero-points
};

class QuantisedWeights : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override { set_backend(GetParam().backend); }
  void TearDown() override { set_backend(Backend::kNative); }
  static at::ScalarType dtype() { return GetParam().dtype; }
  static bool native() { return GetParam().backend == Backend::kNative; }
  at::Tensor random(at::IntArrayRef sizes) { return at::randn(sizes, generator_, at::kFloat); }
  // With random zero-points or minimums.
  QuantisedTensor weight(int64_t out, int64_t in) {
    QuantisedTensor q = quantise(random({out, in}), {GetParam().bits, 32});
    q.zeros = GetParam().minimums
                  ? at::Tensor()
                  : at::randint(1 << GetParam().bits, q.zeros.sizes(), generator_, at::kByte);
    if (GetParam().minimums) q.minimums = random(q.scales.sizes());
    return q;
  }
  LoraWeight pair(int64_t rank, int64_t in, int64_t out) {
    return {Weight(random({rank, in}) * 0.2, dtype(), at::kCPU),
            Weight(random({out, rank}) * 0.2, dtype(), at::kCPU)};
  }
  static at::Tensor wide(const Weight& w) { return w.unpacked().to(at::kDouble); }
  // The reference backend rounds the decoded weights and its sums to the dtype.
  void expect_close(const at::Tensor& actual, const at::Tensor& expected) {
    ASSERT_EQ(actual.sizes(), expected.sizes());
    const double unit = dtype() == at::kFloat ? 2e-5 : native() ? 4e-3 : 3e-2;
    const double spread = expected.abs().max().item<double>();
    EXPECT_LE((actual.to(at::kDouble) - expected).abs().max().item<double>(), unit * (1 + spread));
  }
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(5);
};

INSTANTIATE_TEST_SUITE_P(Settings, QuantisedWeights,
                         ::testing::Values(Setting{Backend::kNative, at::kFloat, 4},
                                           Setting{Backend::kNative, at::kFloat, 8},
                                           Setting{Backend::kNative, at::kBFloat16, 4},
                                           Setting{Backend::kNative, at::kBFloat16, 8},
                                           Setting{Backend::kNative, at::kFloat, 4, true},
                                           Setting{Backend::kNative, at::kBFloat16, 4, true},
                                           Setting{Backend::kNative, at::kFloat, 8, true},
                                           Setting{Backend::kReference, at::kFloat, 4, true},
                                           Setting{Backend::kReference, at::kFloat, 4},
                                           Setting{Backend::kReference, at::kBFloat16, 8}),
                         [](const auto& info) {
                           return std::string(info.param.backend == Backend::kNative
                                                  ? "Native"
                                                  : "Reference") +
                                  at::toString(info.param.dtype) + std::to_string(info.param.bits) +
                                  (info.param.minimums ? "Minimums" : "");
                         });

TEST_P(QuantisedWeights, KeepTheirIntegers) {
  const QuantisedTensor q = weight(19, 70);
  const Weight w(q, dtype(), at::kCPU);
  EXPECT_EQ(w.out(), 19);
  EXPECT_EQ(w.in(), 70);
  EXPECT_EQ(w.dtype(), dtype());
  EXPECT_EQ(w.quantised(), native());
  EXPECT_EQ(w.format(), Weight(q.decoded(), dtype(), at::kCPU).format());
  EXPECT_EQ(w.elements(), Weight(q.decoded(), dtype(), at::kCPU).elements());
  if (!native()) return;
  EXPECT_EQ(w.encoding().group, 32);
  EXPECT_TRUE(at::equal(w.unpacked(), q.decoded()));
  EXPECT_LT(w.bytes(), static_cast<size_t>(w.elements()) * 2) << "less than bf16";
}

TEST_P(QuantisedWeights, MultiplyWithAdaptersAndBias) {
  const int64_t in = 70, out = 45;
  const QuantisedTensor q = weight(out, in);
  const at::Tensor bias = random({out});
  const Weight w(q, dtype(), at::kCPU, bias);
  AdapterWeights adapter(1);
  adapter.set(0, pair(8, in, out), 0.5f);
  for (const int64_t tokens : {1, 4, 40}) {
    const at::Tensor x = random({tokens, in}).to(dtype());
    at::Tensor expected =
        at::linear(x.to(at::kDouble), q.decoded().to(at::kDouble), bias.to(at::kDouble));
    expect_close(linear(x, w), expected);
    LoraBatch lora;
    lora.add(tokens / 2, tokens, adapter, 2);
    const LoraWeight& low = *adapter.find(0);
    expected.slice(0, tokens / 2) +=
        at::mm(at::mm(x.slice(0, tokens / 2).to(at::kDouble), wide(low.a).t()), wide(low.b).t());
    expect_close(linear(x, {&w, 0}, lora), expected);
  }
}

// What a layer has while an adapter that touches only some linears is merged.
TEST_P(QuantisedWeights, ShareALaunchWithFloats) {
  const QuantisedTensor q = weight(33, 40), up = weight(33, 40);
  const Weight a(q, dtype(), at::kCPU), b(up, dtype(), at::kCPU),
      floats(q.decoded(), dtype(), at::kCPU);
  for (const int64_t tokens : {1, 30}) {
    const at::Tensor x = random({tokens, 40}).to(dtype()), inputs = x.to(at::kDouble);
    const at::Tensor gate = at::mm(inputs, q.decoded().to(at::kDouble).t()),
                     expected = at::silu(gate) * at::mm(inputs, up.decoded().to(at::kDouble).t());
    expect_close(gated(x, {&a}, {&b}), expected);
    expect_close(gated(x, {&floats}, {&b}), at::silu(at::mm(inputs, wide(floats).t())) *
                                                at::mm(inputs, up.decoded().to(at::kDouble).t()));
    const ModuleWeight three[] = {{&a}, {&floats}, {&b}};
    const auto ys = project(x, three);
    expect_close(ys[0], gate);
    expect_close(ys[1], at::mm(inputs, wide(floats).t()));
    expect_close(linear_float(x, b), at::mm(inputs, up.decoded().to(at::kDouble).t()));
  }
}

TEST_P(QuantisedWeights, AreMergedIntoFloats) {
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{33, 21}, {130, 40}, {8, 3}}) {
    const QuantisedTensor q = weight(out, in);
    const Weight base(q, dtype(), at::kCPU);
    AdapterWeights adapter(1);
    adapter.set(0, pair(5, in, out), 1);
    const Weight merged = base.with_data(base.quantised() ? at::empty({base.elements()}, dtype())
                                                          : at::empty_like(base.data()));
    EXPECT_FALSE(merged.quantised());
    const Merge into{&base, &merged, &adapter, 0, -0.5f};
    merge({&into, 1});
    const at::Tensor expected = q.decoded().to(at::kDouble) -
                                0.5 * at::mm(wide(adapter.find(0)->b), wide(adapter.find(0)->a));
    const double unit = dtype() == at::kFloat ? 1e-5 : 1.0 / 256;
    // The reference backend rounds the decoded weight before it merges.
    const at::Tensor slack = q.decoded().to(at::kDouble).abs() * (native() ? 0 : unit);
    EXPECT_TRUE(((wide(merged) - expected).abs() <= expected.abs() * unit + slack + 1e-5)
                    .all()
                    .item<bool>());
    if (!native()) continue;
    const Merge in_place{&base, &base, &adapter, 0, -0.5f};
    EXPECT_THROW(merge({&in_place, 1}), c10::Error);
  }
}

TEST_P(QuantisedWeights, RefuseWhatTheyCannotDo) {
  QuantisedTensor q = weight(4, 70);
  if (native()) {
    EXPECT_THROW(Weight(q, dtype(), at::kCPU).refill(q.decoded()), c10::Error);
  }
  EXPECT_THROW(Weight(q, dtype(), at::Device(at::kMeta)), c10::Error);
  q.scales[1][2] = INFINITY;
  EXPECT_THROW(Weight(q, dtype(), at::kCPU), c10::Error);
  if (!native()) return;
  QuantisedTensor uneven = quantise(random({4, 70}), {GetParam().bits, 20});
  EXPECT_THROW(Weight(uneven, dtype(), at::kCPU), c10::Error);
}

TEST(Quantise, TakesAnyFloatTypeAndCountsItsBytes) {
  const at::Tensor w = at::randn({40, 100}, at::make_generator<at::CPUGeneratorImpl>(5), at::kFloat)
                           .to(at::kBFloat16);
  for (const int bits : {4, 8}) {
    const QuantisedTensor q = quantise(w, {bits, 32});
    q.check();
    EXPECT_TRUE(q.symmetric());
    EXPECT_TRUE(at::equal(q.values, quantise(w.to(at::kFloat), {bits, 32}).values));
    EXPECT_EQ(Weight(q, at::kFloat, at::kCPU).bytes(), quantised_bytes(40, 100, {bits, 32}));
  }
  EXPECT_EQ(quantise(w, {8, 128}).group, 100);
  at::Tensor bad = w.clone();
  bad[39][99] = NAN;
  EXPECT_THROW(quantise(bad, {4, 32}), c10::Error);
}

}  // namespace
}  // namespace valora::ops
