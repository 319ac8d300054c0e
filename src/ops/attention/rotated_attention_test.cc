// Rotation and attention give bit-identical results in fewer or more launches, with queries, keys
// and values that are columns of one tensor.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <numeric>
#include <tuple>

#include "ops/attention/attention.h"
#include "ops/device/dispatch.h"
#include "ops/testing/platforms.h"

namespace valora::ops {
namespace {

constexpr int64_t kHeads = 6, kKvHeads = 2, kLayers = 2;

struct RotatedStep {
  std::vector<QuerySpan> spans;
  std::vector<std::vector<int32_t>> blocks;
  int64_t tokens = 0, pool = 0;
};

// lengths: (context, queries) of each span.
RotatedStep step_of(const std::vector<std::pair<int64_t, int64_t>>& lengths) {
  RotatedStep step;
  for (const auto& [context, queries] : lengths) {
    const int64_t count = (context + queries + kernels::kBlockTokens - 1) / kernels::kBlockTokens;
    std::vector<int32_t> blocks(static_cast<size_t>(count));
    std::iota(blocks.rbegin(), blocks.rend(), static_cast<int32_t>(step.pool));
    step.pool += count;
    step.blocks.push_back(std::move(blocks));
    step.spans.push_back({step.tokens, queries, context, step.blocks.back().data()});
    step.tokens += queries;
  }
  return step;
}

class Rotated : public ::testing::TestWithParam<std::tuple<const char*, at::ScalarType, int64_t>> {
 protected:
  void SetUp() override {
    if (device().is_cuda() && !testing_support::has_gpu()) GTEST_SKIP() << "no GPU";
  }
  at::Device device() const { return at::Device(std::get<0>(GetParam())); }
  at::ScalarType dtype() const { return std::get<1>(GetParam()); }
  int64_t dim() const { return std::get<2>(GetParam()); }
  at::Tensor random(at::IntArrayRef sizes, at::ScalarType dtype) {
    return at::randn(sizes, generator_, at::kFloat).to(dtype).to(device());
  }
  // rotated: elements of each head.
  RotaryAngles angles(int64_t tokens, double scale, int64_t rotated) {
    const at::Tensor angle = random({tokens, rotated / 2}, at::kFloat);
    return {at::cos(angle) * scale, at::sin(angle) * scale};
  }
  KvArena filled(const RotatedStep& step) {
    generator_ = at::make_generator<at::CPUGeneratorImpl>(5);
    KvArena arena(step.pool, {kLayers, kKvHeads, dim(), dtype()}, device());
    arena.data().copy_(random(arena.data().sizes(), dtype()));
    return arena;
  }
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(4);
};
INSTANTIATE_TEST_SUITE_P(Platforms, Rotated,
                         ::testing::Combine(::testing::Values("cpu", "cuda"),
                                            ::testing::Values(at::kFloat, at::kBFloat16),
                                            ::testing::Values(16, 64)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) +
                                  at::toString(std::get<1>(info.param)) +
                                  std::to_string(std::get<2>(info.param));
                         });

TEST_P(Rotated, AttentionEqualsSeparateLaunches) {
  const std::vector<std::vector<std::pair<int64_t, int64_t>>> steps = {
      {{0, 1}}, {{40, 1}, {700, 1}, {3, 1}}, {{0, 20}, {17, 1}, {600, 3}}};
  for (const auto& lengths : steps) {
    const RotatedStep step = step_of(lengths);
    const KvArena together = filled(step), apart = filled(step);
    SpanTables tables, other_tables;
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const int64_t rotated = layer == 0 ? dim() : dim() / 4;
      const RotaryAngles of_queries = angles(step.tokens, 1.25, rotated),
                         of_keys = angles(step.tokens, 1, rotated);
      const at::Tensor rows = random({step.tokens, (kHeads + 2 * kKvHeads) * dim()}, dtype());
      const at::Tensor copy = rows.clone();
      const auto parts =
          rows.view({step.tokens, -1, dim()}).split_with_sizes({kHeads, kKvHeads, kKvHeads}, 1);
      const auto split =
          copy.view({step.tokens, -1, dim()}).split_with_sizes({kHeads, kKvHeads, kKvHeads}, 1);
      const AttentionRule rule{.window = layer * 20};  // layers with and without share tables
      const at::Tensor actual =
          rotated_paged_attention(parts[0], parts[1], parts[2], of_queries, of_keys, together,
                                  layer, step.spans, rule, &tables);
      at::Tensor q = split[0].contiguous(), k = split[1].contiguous();
      const at::Tensor v = split[2].contiguous();
      rotate_half(q, of_queries.cos, of_queries.sin);
      rotate_half(k, of_keys.cos, of_keys.sin);
      const at::Tensor expected =
          paged_attention(q, k, v, apart, layer, step.spans, rule, &other_tables);
      EXPECT_TRUE(actual.isfinite().all().item<bool>());
      EXPECT_TRUE(at::equal(actual, expected)) << "layer " << layer;
      EXPECT_TRUE(at::equal(together.data(), apart.data())) << "layer " << layer;
    }
  }
}

TEST_P(Rotated, RefusesMismatchedAngles) {
  const RotatedStep step = step_of({{0, 2}});
  const KvArena arena = filled(step);
  const at::Tensor q = random({2, kHeads, dim()}, dtype()),
                   k = random({2, kKvHeads, dim()}, dtype());
  const RotaryAngles right = angles(2, 1, dim()), fewer = angles(1, 1, dim()),
                     narrow = angles(2, 1, dim() / 2), wide = angles(2, 1, 2 * dim());
  const auto attend = [&](const RotaryAngles& of_queries, const RotaryAngles& of_keys) {
    return rotated_paged_attention(q, k, k, of_queries, of_keys, arena, 0, step.spans);
  };
  EXPECT_THROW(attend(fewer, right), c10::Error);
  EXPECT_THROW(attend(right, fewer), c10::Error);
  EXPECT_THROW(attend(wide, wide), c10::Error);
  EXPECT_NO_THROW(attend(right, right));
  EXPECT_NO_THROW(attend(narrow, narrow));
}

}  // namespace
}  // namespace valora::ops
