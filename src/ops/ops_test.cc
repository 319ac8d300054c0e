// Every operation but attention against ATen in double precision at odd sizes: on CPUs in both
// dtypes with both backends, and on a GPU if torch supports one.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "ops/elementwise/elementwise.h"
#include "ops/linear/linear.h"
#include "ops/merge/merge.h"
#include "ops/testing/platforms.h"

namespace valora::ops {
namespace {

using namespace testing_support;

INSTANTIATE_TEST_SUITE_P(Platforms, Ops, all_platforms(), name_of_platform);

TEST_P(Ops, Linear) {
  for (const int64_t tokens : {1, 3, 17})
    for (const auto& [in, out] :
         {std::pair<int64_t, int64_t>{1, 1}, {24, 40}, {37, 19}, {130, 65}}) {
      const at::Tensor x = random({tokens, in}), w = random({out, in}), bias = random({out});
      const Weight weight(w, dtype(), device());
      EXPECT_EQ(weight.out(), out);
      EXPECT_EQ(weight.in(), in);
      const at::Tensor expected = at::mm(wide(x), wide(w).t());
      expect_close(linear(x, weight), expected, 2);
      expect_close(linear(x, Weight(w, dtype(), device(), bias)), expected + wide(bias), 2);
      EXPECT_EQ(linear_float(x, weight).scalar_type(), at::kFloat);
      expect_close(linear_float(x, weight), expected, 2);
    }
}

TEST_P(Ops, LinearRefusesMismatchedInputs) {
  const Weight weight(random({4, 6}), dtype(), device());
  EXPECT_THROW(linear(random({2, 5}), weight), c10::Error);
  EXPECT_THROW(linear(random({6, 2}).t(), weight), c10::Error);
  EXPECT_THROW(linear(random({2, 6}).to(at::kDouble), weight), c10::Error);
}

TEST_P(Ops, AddLoraUnderSegmentsOfSeveralAdapters) {
  const int64_t in = 33, out = 21, tokens = 12;
  std::vector<AdapterWeights> adapters;
  std::vector<at::Tensor> a, b;
  for (const int64_t rank : {1, 5, 16}) {
    a.push_back(random({rank, in}) * 0.2);
    b.push_back(random({out, rank}) * 0.2);
    adapters.emplace_back(1).set(
        0, {Weight(a.back(), dtype(), device()), Weight(b.back(), dtype(), device())}, 0.5f);
  }
  // Tokens 2 and 3 have no adapter, tokens 4 to 6 the sum of two, token 7 one of these, and tokens
  // from 8 on one with a negative coefficient.
  LoraBatch lora;
  lora.add(0, 2, adapters[0], 2);
  lora.add(4, 8, adapters[1], 1);
  lora.add(4, 7, adapters[2], 0.5f);
  lora.add(8, 12, adapters[2], -1);
  const at::Tensor x = random({tokens, in}), w = random({out, in});
  const Weight base(w, dtype(), device());
  at::Tensor expected = at::mm(wide(x), wide(w).t());
  const int which[] = {0, 1, 2, 2};
  for (size_t i = 0; i < lora.segments().size(); ++i) {
    const auto& s = lora.segments()[i];
    expected.slice(0, s.token_begin, s.token_end) +=
        s.coefficient * 0.5 *
        at::mm(at::mm(wide(x.slice(0, s.token_begin, s.token_end)), wide(a[which[i]]).t()),
               wide(b[which[i]]).t());
  }
  const at::Tensor actual = linear(x, {&base, 0}, lora);
  expect_close(actual, expected, 4);
  EXPECT_TRUE(at::equal(actual.slice(0, 2, 4), linear(x, base).slice(0, 2, 4)))
      << "tokens without a segment";
}

TEST_P(Ops, MergesIntoCopiesAndInPlace) {
  std::vector<Weight> bases, shadows;
  AdapterWeights adapter(3);
  std::vector<at::Tensor> expected;
  for (const auto& [in, out, rank] :
       {std::tuple<int64_t, int64_t, int64_t>{33, 21, 5}, {64, 40, 16}, {1, 3, 2}}) {
    const at::Tensor w = random({out, in}), a = random({rank, in}) * 0.2,
                     b = random({out, rank}) * 0.2;
    bases.emplace_back(w, dtype(), device());
    shadows.push_back(bases.back().with_data(at::empty_like(bases.back().data())));
    adapter.set(static_cast<int>(expected.size()),
                {Weight(a, dtype(), device()), Weight(b, dtype(), device())}, 1);
    expected.push_back(wide(w) - 0.5 * at::mm(wide(b), wide(a)));
  }
  std::vector<Merge> beside, in_place;
  for (int i = 0; i < 3; ++i) {
    beside.push_back({&bases[i], &shadows[i], &adapter, i, -0.5f});
    in_place.push_back({&bases[i], &bases[i], &adapter, i, -0.5f});
  }
  merge(beside);
  merge(in_place);
  for (size_t i = 0; i < bases.size(); ++i) {
    expect_close(shadows[i].unpacked(), expected[i]);
    EXPECT_TRUE(at::equal(shadows[i].unpacked(), bases[i].unpacked()));
  }
  const AdapterWeights other(3);
  EXPECT_THROW(merge(std::vector<Merge>{{&bases[0], &shadows[1], &adapter, 0, 1}}), c10::Error);
  EXPECT_THROW(merge(std::vector<Merge>{{&bases[0], &shadows[0], &adapter, 1, 1}}), c10::Error);
  EXPECT_THROW(merge(std::vector<Merge>{{&bases[0], &shadows[0], &adapter, 3, 1}}), c10::Error);
  EXPECT_THROW(merge(std::vector<Merge>{{&bases[0], &shadows[0], &other, 0, 1}}), c10::Error);
}

// On GPUs of sm_90 in wide tiles, all rows being aligned.
TEST_P(Ops, MergesHighRanks) {
  std::vector<Weight> bases, merged;
  AdapterWeights adapter(2);
  std::vector<at::Tensor> expected;
  for (const auto& [in, out, rank] :
       {std::tuple<int64_t, int64_t, int64_t>{136, 200, 100}, {64, 24, 9}}) {
    const at::Tensor w = random({out, in}), a = random({rank, in}) * 0.1,
                     b = random({out, rank}) * 0.1;
    bases.emplace_back(w, dtype(), device());
    merged.push_back(bases.back().with_data(at::empty_like(bases.back().data())));
    adapter.set(static_cast<int>(expected.size()),
                {Weight(a, dtype(), device()), Weight(b, dtype(), device())}, 1);
    expected.push_back(wide(w) + 0.5 * at::mm(wide(b), wide(a)));
  }
  merge(std::vector<Merge>{{&bases[0], &merged[0], &adapter, 0, 0.5f},
                           {&bases[1], &merged[1], &adapter, 1, 0.5f}});
  for (size_t i = 0; i < merged.size(); ++i) expect_close(merged[i].unpacked(), expected[i]);
}

TEST_P(Ops, RefillEqualsConstructor) {
  const at::Tensor w = random({21, 33}), other = random({21, 33}).to(at::kFloat);
  Weight weight(w, dtype(), device());
  const at::Tensor data = weight.data();
  weight.refill(other);
  EXPECT_TRUE(at::equal(weight.data(), Weight(other, dtype(), device()).data()));
  EXPECT_TRUE(data.is_same(weight.data())) << "it lies where it lay";
  EXPECT_THROW(weight.refill(w.t()), c10::Error);
}

TEST_P(Ops, RmsNorm) {
  const at::Tensor x = random({5, 37}), delta = random({5, 37}), weight = random({37});
  const auto reference = [&](const at::Tensor& v, double offset = 0) {
    return v * at::rsqrt(v.pow(2).mean(-1, true) + 1e-6) * (wide(weight) + offset);
  };
  expect_close(rms_norm(x, weight, 1e-6), reference(wide(x)));
  at::Tensor stream = x.clone();
  const at::Tensor normed = add_rms_norm(stream, delta, weight, 1e-6);
  expect_close(stream, wide(x) + wide(delta));
  expect_close(normed, reference(wide(stream)));
  EXPECT_THROW(rms_norm(x, random({36}), 1e-6), c10::Error);
  expect_close(rms_norm(x, weight, 1e-6, 1), reference(wide(x), 1), 2);
  const at::Tensor offset = add_rms_norm(stream, delta, weight, 1e-6, 1);
  expect_close(offset, reference(wide(stream), 1), 2);
}

TEST_P(Ops, QuickGelu) {
  const at::Tensor x = random({3, 50}) * 6;
  expect_close(quick_gelu(x), wide(x) * at::sigmoid(1.702 * wide(x)), 2);
}

TEST_P(Ops, Gated) {
  for (const int64_t tokens : {1, 9, 150}) {
    const at::Tensor x = random({tokens, 40}), g = random({37, 40}) * 0.3,
                     u = random({37, 40}) * 0.3;
    const at::Tensor a = random({5, 40}) * 0.3, b = random({37, 5}) * 0.3;
    AdapterWeights adapter(2);  // on the second module only
    adapter.set(1, {Weight(a, dtype(), device()), Weight(b, dtype(), device())}, 1);
    LoraBatch lora;
    lora.add(0, tokens, adapter, 0.5f);
    const at::Tensor gate = at::mm(wide(x), wide(g).t()), up = at::mm(wide(x), wide(u).t());
    const Weight gate_weight(g, dtype(), device()), up_weight(u, dtype(), device());
    expect_close(gated(x, {&gate_weight}, {&up_weight}), at::silu(gate) * up, 4);
    expect_close(gated(x, {&gate_weight}, {&up_weight}, {}, Gate::kGeluTanh),
                 at::gelu(gate, "tanh") * up, 4);
    const at::Tensor expected =
        at::silu(gate) * (up + 0.5 * at::mm(at::mm(wide(x), wide(a).t()), wide(b).t()));
    expect_close(gated(x, {&gate_weight, 0}, {&up_weight, 1}, lora), expected, 4);
    lora.also_touch(std::vector<uint64_t>{0b11});
    expect_close(gated(x, {&gate_weight, 0}, {&up_weight, 1}, lora), expected, 4);
    expect_close(linear(x, {&gate_weight, 0}, lora), gate, 2);
  }
}

// Tokens without adapters, with one of them and with both, several times with one batch of
// segments.
TEST_P(Ops, GatedUnderSomeTokensAdapters) {
  const at::Tensor g = random({37, 40}) * 0.3, u = random({37, 40}) * 0.3;
  const Weight gate(g, dtype(), device()), up(u, dtype(), device());
  std::vector<AdapterWeights> adapters;
  std::vector<std::array<at::Tensor, 2>> changes;  // of gate and up, [37, 40]
  for (const int64_t rank : {3, 16}) {
    AdapterWeights& adapter = adapters.emplace_back(2);
    auto& change = changes.emplace_back();
    for (int module = rank == 3 ? 1 : 0; module < 2; ++module) {
      const at::Tensor a = random({rank, 40}) * 0.3, b = random({37, rank}) * 0.3;
      adapter.set(module, {Weight(a, dtype(), device()), Weight(b, dtype(), device())}, 0.5f);
      change[module] = 0.5 * at::mm(wide(b), wide(a));
    }
  }
  LoraBatch lora;
  lora.add(1, 3, adapters[0], 1);
  lora.add(2, 6, adapters[1], -0.7f);
  for (const int64_t tokens : {20, 7, 20}) {
    const at::Tensor x = random({tokens, 40});
    at::Tensor sums[2] = {at::mm(wide(x), wide(g).t()), at::mm(wide(x), wide(u).t())};
    const auto add = [&](int64_t begin, int64_t end, int module, size_t i, double factor) {
      sums[module].slice(0, begin, end) +=
          factor * at::mm(wide(x).slice(0, begin, end), changes[i][module].t());
    };
    add(1, 3, 1, 0, 1), add(2, 6, 0, 1, -0.7), add(2, 6, 1, 1, -0.7);
    expect_close(gated(x, {&gate, 0}, {&up, 1}, lora), at::silu(sums[0]) * sums[1], 4);
    expect_close(gated(x, {&gate, 0}, {&up, 1}, lora, Gate::kGeluTanh),
                 at::gelu(sums[0], "tanh") * sums[1], 4);
  }
}

TEST_P(Ops, PackedWeightsRoundTrip) {
  const at::Tensor w = random({37, 21});
  EXPECT_TRUE(at::equal(Weight(w, dtype(), device()).unpacked(), w));
}

TEST_P(Ops, RotateHalf) {
  const at::Tensor both = random({4, 2, 3, 10}), angle = random({4, 5}).to(at::kFloat);
  const at::Tensor c = at::cos(wide(angle)).unsqueeze(1), s = at::sin(wide(angle)).unsqueeze(1);
  for (at::Tensor x :
       {both.select(1, 0).contiguous(), both.select(1, 1)}) {  // contiguous and strided rows
    const at::Tensor left = wide(x).slice(2, 0, 5), right = wide(x).slice(2, 5, 10),
                     untouched = wide(both.select(1, 0));
    rotate_half(x, at::cos(angle), at::sin(angle));
    expect_close(x, at::cat({left * c - right * s, right * c + left * s}, 2));
    EXPECT_TRUE(at::equal(wide(both.select(1, 0)), untouched));
  }
}

}  // namespace
}  // namespace valora::ops
