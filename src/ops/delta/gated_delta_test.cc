// Compares steps that keep states, on CPUs and, if there is one, on a GPU, with the differentiable
// form over whole sequences.
#include "ops/delta/gated_delta.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <numeric>

#include "ops/testing/platforms.h"

namespace valora::ops {
namespace {

constexpr StateShape kShape{2, 2 * 2 * 6 + 4 * 9, 4, 2, 4, 6, 9, 4};

struct DeltaFixture {
  explicit DeltaFixture(int64_t tokens) {
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
    const auto random = [&](at::IntArrayRef sizes) { return at::randn(sizes, generator); };
    x = {random({tokens, kShape.channels}), random({tokens, 36}), random({tokens, 4}),
         random({tokens, 4})};
    w = {random({4, kShape.channels}), random({4}).abs(), random({4}), random({9}), 1e-6};
  }
  DeltaTokens x;
  DeltaWeights w;
};

class GatedDelta : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (device().is_cuda() && !testing_support::has_gpu()) GTEST_SKIP() << "no GPU";
  }
  at::Device device() const { return at::Device(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Devices, GatedDelta, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

DeltaWeights on(at::Device device, const DeltaWeights& w) {
  return {w.conv.to(device), w.rate.to(device), w.bias.to(device), w.norm.to(device), w.eps};
}

TEST_P(GatedDelta, StepsOverBlocksEqualTheSequence) {
  const DeltaFixture f(150);
  const kernels::QuerySpan whole[] = {{0, 100, 0}, {100, 50, 0}};
  const at::Tensor expected = sequence_gated_delta(f.x, f.w, kShape, whole);
  const DeltaWeights weights = on(device(), f.w);
  const auto bytes = (StateLayout::least_block_bytes(kShape) + 63) / 64 * 64;
  const StateLayout layout(kShape, bytes);
  const int32_t n = layout.blocks();
  ASSERT_GT(n, 3);
  const PoolMemory pool(4 * n, bytes, device());
  const StateArena arena(pool, layout, device());
  std::vector<int32_t> blocks(4 * n);  // two sequences, a checkpoint, and its continuation
  for (int32_t i = 0; i < 4 * n; ++i) blocks[i] = (i * 7 + 3) % (4 * n);
  std::ranges::sort(blocks, [](int32_t a, int32_t b) { return a % 5 * 100 + a < b % 5 * 100 + b; });
  const int32_t *first = blocks.data(), *second = first + n, *kept = second + n, *again = kept + n;
  const auto run = [&](std::vector<kernels::QuerySpan> spans, std::vector<StateSpan> states) {
    std::vector<at::Tensor> rows;
    for (auto& span : spans) rows.push_back(at::arange(span.begin, span.begin + span.queries));
    int64_t at = 0;
    for (auto& span : spans) span.begin = std::exchange(at, at + span.queries);
    const at::Tensor index = at::cat(rows);
    const auto of = [&](const at::Tensor& x) { return x.index_select(0, index); };
    const auto there = [&](const at::Tensor& x) { return of(x).to(device()); };
    const DeltaTokens tokens{there(f.x.qkv), there(f.x.z), there(f.x.b), there(f.x.a)};
    StateSpanTables tables;
    for (const int64_t layer : {1, 0}) {  // with the same weights
      const at::Tensor y = gated_delta(tokens, weights, arena, layer, spans, states, &tables).cpu();
      EXPECT_TRUE(at::allclose(y, of(expected), 1e-3, 1e-4)) << (y - of(expected)).abs().max();
    }
  };
  run({{0, 70, 0}, {100, 1, 0}}, {{nullptr, first, {{{kept, 64}}}}, {nullptr, second}});
  run({{70, 1, 0}, {101, 40, 0}}, {{first, first}, {second, second}});
  run({{64, 36, 0}, {71, 29, 0}, {141, 9, 0}}, {{kept, again}, {first, first}, {second, second}});
  run({{64, 2, 0}}, {{kept, first}});
}

TEST(GatedDeltaOp, HasGradients) {
  DeltaFixture f(70);
  for (at::Tensor* x : {&f.x.qkv, &f.x.z, &f.x.b, &f.x.a}) x->set_requires_grad(true);
  const kernels::QuerySpan whole[] = {{0, 66, 0}, {66, 4, 0}};
  sequence_gated_delta(f.x, f.w, kShape, whole).pow(2).sum().backward();
  for (const at::Tensor& x : {f.x.qkv, f.x.z, f.x.b, f.x.a}) {
    EXPECT_TRUE(at::isfinite(x.grad()).all().item<bool>());
    EXPECT_GT(x.grad().abs().sum().item<double>(), 0);
  }
}

TEST(GatedDeltaOp, RefusesMismatchedShapes) {
  const DeltaFixture f(4);
  const auto bytes = (StateLayout::least_block_bytes(kShape) + 63) / 64 * 64;
  const StateArena arena(PoolMemory(1, bytes, at::kCPU), StateLayout(kShape, bytes), at::kCPU);
  const kernels::QuerySpan span{0, 4, 0};
  EXPECT_THROW(gated_delta(f.x, f.w, arena, 0, {&span, 1}, {}), c10::Error);
  DeltaTokens narrow = f.x;
  narrow.z = narrow.z.narrow(1, 0, 35);
  const StateSpan state;
  EXPECT_THROW(gated_delta(narrow, f.w, arena, 0, {&span, 1}, {&state, 1}), c10::Error);
}

}  // namespace
}  // namespace valora::ops
