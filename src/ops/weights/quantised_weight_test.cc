// Linears with integer weights, against ATen on the decoded weights. GPU tests are skipped without
// a GPU.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "ops/device/backend.h"
#include "ops/device/dispatch.h"
#include "ops/linear/linear.h"
#include "ops/merge/merge.h"
#include "ops/testing/platforms.h"
#include "ops/weights/adjacent_weights.h"
#include "ops/weights/quantised_tensor.h"
#include "ops/weights/weight_cpu.h"

namespace valora::ops {
namespace {

struct Setting {
  Backend backend;
  at::ScalarType dtype;
  int bits;
  bool minimums = false;  // instead of zero-points
  at::DeviceType device = at::kCPU;
};

class QuantisedWeights : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    if (on_gpu() && !testing_support::has_gpu()) GTEST_SKIP() << "no GPU";
    set_backend(GetParam().backend);
  }
  void TearDown() override { set_backend(Backend::kNative); }
  static at::ScalarType dtype() { return GetParam().dtype; }
  static bool on_gpu() { return GetParam().device == at::kCUDA; }
  static at::Device device() { return on_gpu() ? at::Device(at::kCUDA, 0) : at::kCPU; }
  static at::Tensor there(const at::Tensor& x) { return x.to(device()); }
  static bool native() { return GetParam().backend == Backend::kNative; }
  at::Tensor random(at::IntArrayRef sizes) { return at::randn(sizes, generator_, at::kFloat); }
  // A weight with random zero-points or minimums.
  QuantisedTensor weight(int64_t out, int64_t in) {
    QuantisedTensor q = quantise(random({out, in}), {GetParam().bits, 32});
    q.zeros = GetParam().minimums
                  ? at::Tensor()
                  : at::randint(1 << GetParam().bits, q.zeros.sizes(), generator_, at::kByte);
    if (GetParam().minimums) q.minimums = random(q.scales.sizes());
    return q;
  }
  LoraWeight pair(int64_t rank, int64_t in, int64_t out) {
    return {Weight(random({rank, in}) * 0.2, dtype(), device()),
            Weight(random({out, rank}) * 0.2, dtype(), device())};
  }
  static at::Tensor wide(const Weight& w) { return w.unpacked().to(at::kCPU, at::kDouble); }
  // The reference backend rounds decoded weights and sums to the dtype.
  void expect_close(const at::Tensor& actual, const at::Tensor& expected, double roundings = 1) {
    ASSERT_EQ(actual.sizes(), expected.sizes());
    const double unit = dtype() == at::kFloat ? 2e-5 : native() ? 4e-3 : 3e-2;
    const double spread = expected.abs().max().item<double>();
    EXPECT_LE((actual.to(at::kCPU, at::kDouble) - expected).abs().max().item<double>(),
              roundings * unit * (1 + spread));
  }
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(5);
};

INSTANTIATE_TEST_SUITE_P(
    Settings, QuantisedWeights,
    ::testing::Values(
        Setting{Backend::kNative, at::kFloat, 4}, Setting{Backend::kNative, at::kFloat, 8},
        Setting{Backend::kNative, at::kBFloat16, 4}, Setting{Backend::kNative, at::kBFloat16, 8},
        Setting{Backend::kNative, at::kFloat, 4, true},
        Setting{Backend::kNative, at::kBFloat16, 4, true},
        Setting{Backend::kNative, at::kFloat, 8, true},
        Setting{Backend::kReference, at::kFloat, 4, true},
        Setting{Backend::kReference, at::kFloat, 4}, Setting{Backend::kReference, at::kBFloat16, 8},
        Setting{Backend::kNative, at::kFloat, 4, false, at::kCUDA},
        Setting{Backend::kNative, at::kFloat, 8, true, at::kCUDA},
        Setting{Backend::kNative, at::kBFloat16, 8, false, at::kCUDA},
        Setting{Backend::kNative, at::kBFloat16, 4, true, at::kCUDA},
        Setting{Backend::kNative, at::kHalf, 4, false, at::kCUDA}),
    [](const auto& info) {
      return std::string(info.param.backend == Backend::kNative ? "Native" : "Reference") +
             at::toString(info.param.dtype) + std::to_string(info.param.bits) +
             (info.param.minimums ? "Minimums" : "") +
             (info.param.device == at::kCUDA ? "Cuda" : "");
    });

TEST_P(QuantisedWeights, IntegersRoundTrip) {
  const QuantisedTensor q = weight(19, 70);
  const Weight w(q, dtype(), device());
  EXPECT_EQ(w.out(), 19);
  EXPECT_EQ(w.in(), 70);
  EXPECT_EQ(w.dtype(), dtype());
  EXPECT_EQ(w.quantised(), native());
  EXPECT_EQ(w.format(), Weight(q.decoded(), dtype(), device()).format());
  EXPECT_EQ(w.elements(), Weight(q.decoded(), dtype(), device()).elements());
  if (!native()) return;
  EXPECT_EQ(w.encoding().group, 32);
  EXPECT_TRUE(at::equal(w.unpacked().cpu(), q.decoded()));
  const Weight whole(weight(32, 128), dtype(), device());  // without padding
  EXPECT_LT(whole.bytes(), static_cast<size_t>(whole.elements()) * 2) << "less than bf16";
  Weight one = w, other = w;
  Weight* const both[] = {&one, &other};
  place_adjacent(both);
  EXPECT_TRUE(one.quantised() && one.data().is_alias_of(w.data()));
}

TEST_P(QuantisedWeights, MultiplyWithAdaptersAndBias) {
  const int64_t out = 45;
  for (const int64_t in : {70, 136}) {
    const QuantisedTensor q = weight(out, in);
    const at::Tensor bias = random({out}).to(dtype()).to(at::kFloat);
    const Weight w(q, dtype(), device(), bias);
    AdapterWeights adapter(1);
    adapter.set(0, pair(8, in, out), 0.5f);
    for (const int64_t tokens : {1, 4, 40}) {
      const at::Tensor x = random({tokens, in}).to(dtype());
      at::Tensor expected =
          at::linear(x.to(at::kDouble), q.decoded().to(at::kDouble), bias.to(at::kDouble));
      expect_close(linear(there(x), w), expected);
      LoraBatch lora;
      lora.add(tokens / 2, tokens, adapter, 2);
      const LoraWeight& low = *adapter.find(0);
      expected.slice(0, tokens / 2) +=
          at::mm(at::mm(x.slice(0, tokens / 2).to(at::kDouble), wide(low.a).t()), wide(low.b).t());
      expect_close(linear(there(x), {&w, 0}, lora), expected);
    }
  }
}

// As in a layer while an adapter that touches only some of its linears is merged.
TEST_P(QuantisedWeights, ShareALaunchWithFloats) {
  const QuantisedTensor q = weight(33, 40), up = weight(33, 40);
  const Weight a(q, dtype(), device()), b(up, dtype(), device()),
      floats(q.decoded(), dtype(), device());
  AdapterWeights adapter(2);
  adapter.set(1, pair(8, 40, 33), 0.5f);
  for (const int64_t tokens : {1, 30}) {
    const at::Tensor x = random({tokens, 40}).to(dtype()), inputs = x.to(at::kDouble);
    const at::Tensor gate = at::mm(inputs, q.decoded().to(at::kDouble).t()),
                     expected = at::silu(gate) * at::mm(inputs, up.decoded().to(at::kDouble).t());
    // On GPUs, gate and up are rounded before they are multiplied.
    const double roundings = on_gpu() ? 3 : 1;
    expect_close(gated(there(x), {&a}, {&b}), expected, roundings);
    expect_close(gated(there(x), {&floats}, {&b}),
                 at::silu(at::mm(inputs, wide(floats).t())) *
                     at::mm(inputs, up.decoded().to(at::kDouble).t()),
                 roundings);
    const ModuleWeight three[] = {{&a}, {&floats}, {&b}};
    const auto ys = project(there(x), three);
    expect_close(ys[0], gate);
    expect_close(ys[1], at::mm(inputs, wide(floats).t()));
    expect_close(linear_float(there(x), b), at::mm(inputs, up.decoded().to(at::kDouble).t()));
    LoraBatch lora;  // up's adapter of the last tokens
    lora.add(tokens / 2, tokens, adapter, 2);
    at::Tensor ups = at::mm(inputs, up.decoded().to(at::kDouble).t());
    const LoraWeight& low = *adapter.find(1);
    ups.slice(0, tokens / 2) +=
        at::mm(at::mm(inputs.slice(0, tokens / 2), wide(low.a).t()), wide(low.b).t());
    expect_close(gated(there(x), {&a, 0}, {&b, 1}, lora), at::silu(gate) * ups, 2 * roundings);
  }
}

TEST_P(QuantisedWeights, MergeIntoFloats) {
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{33, 21}, {130, 40}, {8, 3}}) {
    const QuantisedTensor q = weight(out, in);
    const Weight base(q, dtype(), device());
    AdapterWeights adapter(1);
    adapter.set(0, pair(5, in, out), 1);
    const Weight merged = base.with_data(
        base.quantised() ? at::empty({base.elements()}, base.data().options().dtype(dtype()))
                         : at::empty_like(base.data()));
    EXPECT_FALSE(merged.quantised());
    const Merge into{&base, &merged, &adapter, 0, -0.5f};
    merge({&into, 1});
    const at::Tensor expected = q.decoded().to(at::kDouble) -
                                0.5 * at::mm(wide(adapter.find(0)->b), wide(adapter.find(0)->a));
    const double unit = dtype() == at::kFloat ? 1e-5 : 1.0 / 256;
    // The reference backend rounds the decoded weight before merging.
    const at::Tensor slack = q.decoded().to(at::kDouble).abs() * (native() ? 0 : unit);
    EXPECT_TRUE(((wide(merged) - expected).abs() <= expected.abs() * unit + slack + 1e-5)
                    .all()
                    .item<bool>());
    if (!native()) continue;
    const Merge in_place{&base, &base, &adapter, 0, -0.5f};
    EXPECT_THROW(merge({&in_place, 1}), c10::Error);
  }
}

TEST_P(QuantisedWeights, RefuseUnsupportedUses) {
  QuantisedTensor q = weight(4, 70);
  if (native()) {
    EXPECT_THROW(Weight(q, dtype(), device()).refill(q.decoded()), c10::Error);
  }
  EXPECT_THROW(Weight(q, dtype(), at::Device(at::kMeta)), c10::Error);
  q.scales[1][2] = INFINITY;
  EXPECT_THROW(Weight(q, dtype(), device()), c10::Error);
  if (!native()) return;
  QuantisedTensor uneven = quantise(random({4, 70}), {GetParam().bits, 20});
  EXPECT_THROW(Weight(uneven, dtype(), device()), c10::Error);
}

TEST(Quantise, AcceptsAnyFloatTypeAndPredictsBytes) {
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
