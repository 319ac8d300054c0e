// Every operation against ATen in double precision at odd sizes: on CPUs in both dtypes with both
// backends, and on a GPU if torch supports one.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "kernels/testing/attended.h"
#include "ops/attention.h"
#include "ops/attention_targets.h"
#include "ops/backend.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/merge.h"
#include "ops/pool_memory.h"
#include "ops/run_attention.h"

namespace valora::ops {
namespace {

// Device, dtype and backend. All platforms run the same test bodies.
struct Platform {
  const char* name;
  at::Device device;
  Backend backend;
};

std::vector<Platform> platforms() {
  std::vector<Platform> all{{"native", at::kCPU, Backend::kNative},
                            {"reference", at::kCPU, Backend::kReference}};
  if (at::globalContext().hasCUDA())
    all.push_back({"cuda", at::Device(at::kCUDA, 0), Backend::kNative});
  return all;
}

class Ops : public ::testing::TestWithParam<std::tuple<Platform, at::ScalarType>> {
 protected:
  Ops() : generator_(at::make_generator<at::CPUGeneratorImpl>(3)) {}
  void SetUp() override { set_backend(platform().backend); }
  void TearDown() override { set_backend(Backend::kNative); }
  const Platform& platform() const { return std::get<0>(GetParam()); }
  at::Device device() const { return platform().device; }
  at::ScalarType dtype() const { return std::get<1>(GetParam()); }
  at::Tensor random(at::IntArrayRef sizes) {
    return at::randn(sizes, generator_, at::kFloat)
        .to(at::TensorOptions().dtype(dtype()).device(device()));
  }
  bool on_gpu_kernels() const {
    return device().is_cuda() && platform().backend == Backend::kNative;
  }
  double tolerance() const { return dtype() == at::kFloat ? 2e-5 : 2e-2; }
  // `expected` is in double precision; `actual` was rounded once.
  void expect_close(const at::Tensor& actual, const at::Tensor& expected, double scale = 1) {
    ASSERT_EQ(actual.sizes(), expected.sizes());
    const at::Tensor difference =
        (actual.to(at::TensorOptions().dtype(at::kDouble).device(at::kCPU)) - expected).abs();
    const at::Tensor allowed = tolerance() * scale * (1 + expected.abs());
    EXPECT_TRUE((difference <= allowed).all().item<bool>())
        << "off by " << difference.max().item<double>();
  }
  at::Generator generator_;
};
INSTANTIATE_TEST_SUITE_P(Platforms, Ops,
                         ::testing::Combine(::testing::ValuesIn(platforms()),
                                            ::testing::Values(at::kFloat, at::kBFloat16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) == at::kFloat ? "Float" : "Bf16");
                         });

at::Tensor wide(const at::Tensor& x) {
  return x.to(at::TensorOptions().dtype(at::kDouble).device(at::kCPU));
}

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

// One sequence's attention in double precision: queries at the end of the keys; each attends to the
// last `window` keys up to its own, and to its joint range.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const AttentionRule& rule = {}, std::span<const PositionRange> joint = {}) {
  const int64_t queries = q.size(0), heads = q.size(1), keys = k.size(0), group = heads / k.size(1);
  const at::Tensor key = wide(k).repeat_interleave(group, 1).permute({1, 2, 0}),
                   value = wide(v).repeat_interleave(group, 1).permute({1, 0, 2});
  at::Tensor scores = at::matmul(wide(q).permute({1, 0, 2}), key);
  if (rule.scale > 0)
    scores = scores * rule.scale;
  else
    scores = scores / std::sqrt(double(q.size(2)));
  const at::Tensor visible = at::empty({queries, keys}, at::kBool);
  auto shown = visible.accessor<bool, 2>();
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j)
      shown[i][j] = kernels::testing_support::attends(keys - queries + i, j, rule.window, joint);
  scores = scores.masked_fill(visible.logical_not(), -INFINITY);
  return at::matmul(at::softmax(scores, -1), value)
      .permute({1, 0, 2})
      .reshape({queries, heads * q.size(2)});
}

TEST_P(Ops, PagedAttentionInChunksEqualsTheWholeSequence) {
  const int64_t heads = 6, kv_heads = 2, dim = 12, length = 50;
  const at::Tensor q = random({length, heads, dim}), k = random({length, kv_heads, dim}),
                   v = random({length, kv_heads, dim});
  for (const auto& [window, scale] :
       {std::pair<int64_t, double>{0, 0}, {1, 0}, {13, 0.7}, {16, 0}}) {
    const AttentionRule rule{.window = window, .scale = scale};
    const at::Tensor expected = attend(q, k, v, rule);
    const std::vector<int32_t> table{6, 1, 4, 3};
    for (const int64_t chunk : {1, 5, 7, 8, 19, 50}) {
      const KvArena arena(8, {2, kv_heads, dim, dtype()}, device());
      arena.data().fill_(NAN);  // unwritten slots must not be read
      for (int64_t begin = 0; begin < length; begin += chunk) {
        const int64_t count = std::min(chunk, length - begin);
        const QuerySpan span{0, count, begin, table.data()};
        const auto rows = [&](const at::Tensor& x) {
          return x.narrow(0, begin, count).contiguous();
        };
        expect_close(
            paged_attention(rows(q), rows(k), rows(v), arena, 1, std::span(&span, 1), rule),
            expected.narrow(0, begin, count), 2);
      }
    }
  }
}

// Keys and values that 8 bits represent exactly give the same results however they are chunked.
TEST_P(Ops, PagedAttentionOverEightBitsInChunks) {
  const int64_t heads = 6, kv_heads = 2, dim = 12, length = 50;
  const KvShape plain{2, kv_heads, dim, dtype()};
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kFp8}) {
    KvShape shape = plain;
    shape.format = format;
    if (!serves_kv_format(format, dtype(), device())) {
      EXPECT_THROW(KvArena(8, shape, device()), c10::Error);
      continue;
    }
    const int64_t bytes = KvArena::block_bytes(shape, device());
    const int64_t value_bytes = 16 * (on_gpu_kernels() ? 12 : 16);  // in panels on CPUs
    EXPECT_EQ(bytes, 2 * kv_heads * (16 * 12 + value_bytes + 2 * 16 * 2)) << "keys, values, scales";
    const auto exact = [&](int64_t seed) {
      const at::Tensor x = at::randint(-7, 8, {length, kv_heads, dim}, generator_, at::kFloat) / 4;
      x.select(2, seed) = format == KvFormat::kInt8 ? 127.f / 4 : 1.75f;
      return x.to(dtype());
    };
    const at::Tensor q = random({length, heads, dim}) * 0.1, k = exact(1), v = exact(2);
    const AttentionRule rule{.window = format == KvFormat::kInt8 ? 0 : 21};
    const at::Tensor expected = attend(q, k, v, rule);
    const std::vector<int32_t> table{6, 1, 4, 3};
    for (const int64_t chunk : {1, 5, 19, 50}) {
      const PoolMemory pool(8, pool_block_bytes(static_cast<size_t>(bytes), 1), device());
      pool.as(at::kByte).fill_(0xff);
      const KvArena arena(pool, shape, device());
      for (int64_t begin = 0; begin < length; begin += chunk) {
        const int64_t count = std::min(chunk, length - begin);
        const QuerySpan span{0, count, begin, table.data()};
        const auto rows = [&](const at::Tensor& x) {
          return x.narrow(0, begin, count).contiguous();
        };
        expect_close(
            paged_attention(rows(q), rows(k), rows(v), arena, 1, std::span(&span, 1), rule),
            expected.narrow(0, begin, count), 2);
      }
    }
  }
}

TEST_P(Ops, PagedAttentionWithinJointRanges) {
  const int64_t heads = 6, kv_heads = 2, dim = 12, length = 50;
  const at::Tensor q = random({length, heads, dim}), k = random({length, kv_heads, dim}),
                   v = random({length, kv_heads, dim});
  const std::vector<PositionRange> joint{{2, 7}, {7, 9}, {20, 41}};
  const std::vector<int32_t> table{6, 1, 4, 3};
  for (const int64_t window : {0, 4, 30})
    for (const std::vector<int64_t>& ends :
         std::vector<std::vector<int64_t>>{{50}, {2, 7, 9, 41, 50}, {1, 9, 20, 45, 50}}) {
      const AttentionRule rule{.window = window, .scale = 0.4};
      const at::Tensor expected = attend(q, k, v, rule, joint);
      const KvArena arena(8, {2, kv_heads, dim, dtype()}, device());
      arena.data().fill_(NAN);
      int64_t begin = 0;
      for (const int64_t end : ends) {
        const QuerySpan span{0, end - begin, begin, table.data(), joint};
        const auto rows = [&](const at::Tensor& x) { return x.slice(0, begin, end).contiguous(); };
        expect_close(
            paged_attention(rows(q), rows(k), rows(v), arena, 1, std::span(&span, 1), rule),
            expected.slice(0, begin, end), 2);
        begin = end;
      }
    }
  const KvArena arena(8, {2, kv_heads, dim, dtype()}, device());
  const QuerySpan within{0, 30, 0, table.data(), joint};
  const auto part = [&](const at::Tensor& x) { return x.slice(0, 0, 30).contiguous(); };
  EXPECT_THROW(paged_attention(part(q), part(k), part(v), arena, 1, std::span(&within, 1)),
               c10::Error);
}

TEST_P(Ops, SequenceAttentionWithinJointRangesHasGradients) {
  const int64_t heads = 4, kv_heads = 2, dim = 8;
  const std::vector<PositionRange> first{{1, 6}}, second{{0, 3}, {10, 30}};
  for (const auto& lengths : {std::vector<int64_t>{9, 31, 1}, {515, 60}})  // full matrix, blockwise
    for (const int64_t window : {0, 5}) {
      const std::vector<QuerySpan> spans{
          {0, lengths[0], 0, nullptr, first},
          {lengths[0], lengths[1], 0, nullptr, second},
      };
      const int64_t tokens = lengths[0] + lengths[1];
      const AttentionRule rule{.window = window, .scale = 0.4};
      at::Tensor q = random({tokens, heads, dim}).set_requires_grad(true);
      const at::Tensor k = random({tokens, kv_heads, dim}), v = random({tokens, kv_heads, dim});
      const at::Tensor out = sequence_attention(q, k, v, spans, rule);
      out.sum().backward();
      EXPECT_TRUE(q.grad().isfinite().all().item<bool>());
      for (const QuerySpan& s : spans) {
        const auto part = [&](const at::Tensor& x) {
          return x.detach().narrow(0, s.begin, s.queries);
        };
        expect_close(part(out), attend(part(q), part(k), part(v), rule, s.joint), 2);
      }
    }
}

TEST_P(Ops, SequenceAttentionOfSeveralSequencesInWindows) {
  const int64_t heads = 4, kv_heads = 2, dim = 8;
  for (const auto& lengths : {std::vector<int64_t>{9, 30, 1}, {515, 60}})  // full matrix, blockwise
    for (const int64_t window : {0, 1, 8, 29}) {
      std::vector<QuerySpan> spans;
      int64_t tokens = 0;
      for (const int64_t length : lengths)
        spans.push_back({tokens, length, 0, nullptr}), tokens += length;
      at::Tensor q = random({tokens, heads, dim}).set_requires_grad(true);
      const at::Tensor k = random({tokens, kv_heads, dim}), v = random({tokens, kv_heads, dim});
      const at::Tensor out = sequence_attention(q, k, v, spans, {.window = window});
      out.sum().backward();
      EXPECT_TRUE(q.grad().isfinite().all().item<bool>());
      for (const QuerySpan& s : spans) {
        const auto part = [&](const at::Tensor& x) {
          return x.detach().narrow(0, s.begin, s.queries);
        };
        expect_close(part(out), attend(part(q), part(k), part(v), {.window = window}), 2);
      }
    }
}

TEST_P(Ops, PagedAttentionIsTheSameInASharedPool) {
  const int64_t heads = 6, kv_heads = 2, dim = 12, length = 40, layers = 2;
  const at::Tensor q = random({length, heads, dim}), k = random({length, kv_heads, dim}),
                   v = random({length, kv_heads, dim});
  const KvShape shape{layers, kv_heads, dim, dtype()};
  const auto kv_bytes = static_cast<size_t>(KvArena::block_bytes(shape, device()));
  const PoolMemory pool(8, pool_block_bytes(kv_bytes, kv_bytes + 1), device());
  const at::Tensor blocks = pool.as(dtype());
  blocks.fill_(NAN);  // values left by other data must not be read
  const KvArena own(8, shape, device()), shared(pool, shape, device());
  ASSERT_EQ(shared.data().size(0), 8);
  ASSERT_GT(shared.data().stride(0), own.data().stride(0));
  EXPECT_EQ(shared.data().select(0, 5).data_ptr(), pool.block(5));
  const std::vector<int32_t> table{7, 1, 4};
  const QuerySpan spans[] = {{0, 21, 0, table.data()}, {21, 19, 21, table.data()}};
  for (int64_t layer = 0; layer < layers; ++layer)
    for (const QuerySpan& span : spans) {
      const auto attended = [&](const KvArena& arena) {
        const auto rows = [&](const at::Tensor& x) {
          return x.narrow(0, span.begin, span.queries).contiguous();
        };
        const QuerySpan one{0, span.queries, span.context, span.blocks};
        return paged_attention(rows(q), rows(k), rows(v), arena, layer, std::span(&one, 1));
      };
      EXPECT_TRUE(at::equal(attended(shared), attended(own)));
    }
  // Nothing is written between blocks, or to blocks that no table names.
  const int64_t elements = own.data().stride(0);
  for (int32_t block = 0; block < 8; ++block) {
    const bool named = std::ranges::find(table, block) != table.end();
    const int64_t kept = named ? elements : 0;
    EXPECT_TRUE(blocks[block].slice(0, kept).isnan().all().item<bool>());
  }
  EXPECT_THROW(
      KvArena(PoolMemory(8, pool_block_bytes(kv_bytes - 64, 1), device()), shape, device()),
      c10::Error);
}

TEST_P(Ops, PagedAttentionKeepsSequencesApart) {
  const int64_t heads = 4, kv_heads = 4, dim = 8;
  const KvArena arena(8, {1, kv_heads, dim, dtype()}, device());
  const std::vector<std::vector<int32_t>> tables{{5}, {2, 7}, {0}};
  const int64_t lengths[] = {1, 20, 9};
  std::vector<QuerySpan> spans;
  int64_t tokens = 0;
  for (int s = 0; s < 3; ++s) {
    spans.push_back({tokens, lengths[s], 0, tables[s].data()});
    tokens += lengths[s];
  }
  const at::Tensor q = random({tokens, heads, dim}), k = random({tokens, kv_heads, dim}),
                   v = random({tokens, kv_heads, dim});
  const at::Tensor out = paged_attention(q, k, v, arena, 0, spans);
  for (const QuerySpan& s : spans) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, s.begin, s.queries); };
    expect_close(part(out), attend(part(q), part(k), part(v)), 2);
  }
}

TEST_P(Ops, RunAttentionStaysWithinRuns) {
  const at::Tensor q = random({9, 2, 8}), k = random({9, 2, 8}), v = random({9, 2, 8});
  const std::vector<int64_t> ends{2, 4, 6, 7, 9};  // runs of equal length in a row, and others
  RunAttention attention(ends, 2, 8, dtype(), device());
  attention.store(k.slice(0, 0, 3), v.slice(0, 0, 3));
  EXPECT_THROW(attention.attend(0, q), c10::Error);  // some rows are not stored yet
  attention.store(k.slice(0, 3), v.slice(0, 3));
  EXPECT_THROW(attention.store(k, v), c10::Error);
  EXPECT_THROW(attention.attend(1, q), c10::Error);
  const at::Tensor whole = attention.attend(0, q);
  const at::Tensor parts =
      at::cat({attention.attend(0, q.slice(0, 0, 1)), attention.attend(1, q.slice(0, 1, 8)),
               attention.attend(8, q.slice(0, 8))});
  for (const auto& [begin, end] :
       {std::pair<int64_t, int64_t>{0, 2}, {2, 4}, {4, 6}, {6, 7}, {7, 9}}) {
    const auto part = [&, begin = begin, end = end](const at::Tensor& x) {
      return wide(x).slice(0, begin, end).permute({1, 0, 2});
    };
    const at::Tensor weights =
        at::softmax(at::matmul(part(q), part(k).transpose(1, 2)) / std::sqrt(8.0), -1);
    const at::Tensor expected =
        at::matmul(weights, part(v)).permute({1, 0, 2}).reshape({end - begin, 16});
    expect_close(whole.slice(0, begin, end), expected, 2);
    expect_close(parts.slice(0, begin, end), expected, 2);
  }
}

TEST_P(Ops, RunAttentionSplitsProductsAtAnySize) {
  const at::Tensor q = random({30, 2, 8}), kv = random({2, 30, 2, 8});
  const kernels::Runs runs({4, 8, 12, 25, 30});
  const auto attend = [&](int64_t begin, int64_t end, int64_t most_scores) {
    return attend_runs_aten(q.slice(0, begin, end), begin, runs, kv, most_scores);
  };
  const at::Tensor whole = attend(0, 30, kMostScores);
  // Limits that allow: one query, parts of a run, two runs of three, everything.
  for (const int64_t most_scores : {1, 2 * 13, 5 * 2 * 13, 2 * 2 * 4 * 4, 1000}) {
    expect_close(attend(0, 30, most_scores), wide(whole), 2);
    expect_close(attend(3, 21, most_scores), wide(whole.slice(0, 3, 21)), 2);
  }
}

}  // namespace
}  // namespace valora::ops
