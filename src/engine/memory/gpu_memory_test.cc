#include "engine/memory/gpu_memory.h"

#include <gtest/gtest.h>

#include "engine/memory/memory_plan.h"

namespace valora {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Qwen2.5-VL-7B: 28 layers of width 3,584 and 18,944, a tower of 1,280 and 3,420.
models::ModelSpec large_model(bool images) {
  models::ModelSpec spec;
  spec.vocab = 152'064, spec.hidden = 3584, spec.layers = 28;
  spec.heads = 28, spec.kv_heads = 4, spec.head_dim = 128;
  spec.max_positions = 128'000;
  std::vector<adapters::Module> modules{{"layers.0.mlp.gate_proj", 3584, 18'944, 0},
                                        {"layers.0.mlp.down_proj", 18'944, 3584, 0}};
  if (images) {
    spec.image_token = 7;
    modules.push_back({"visual.blocks.0.mlp.gate_proj", 1280, 3420, 0, true});
    modules.push_back({"visual.merger.mlp.0", 5120, 5120, -1, true});
  }
  spec.modules = adapters::ModuleTable(std::move(modules), {}, 3584);
  return spec;
}

int64_t working(const EngineOptions& options, const models::ModelSpec& spec) {
  return gpu_working_bytes(options, spec, at::kBFloat16);
}

TEST(GpuMemory, WorkingMemoryFollowsStepTokens) {
  EngineOptions options;
  const models::ModelSpec spec = large_model(false);
  const int64_t usual = working(options, spec);
  // 2,048 tokens of 14,336 + 56,832 + 9,216 values each are 329 MB.
  EXPECT_GT(usual, (512 + 330) * kMiB);
  EXPECT_LT(usual, 1300 * kMiB);
  // Captured steps of 512 tokens take 82 MB, plus 7 MB of embeddings and hidden states.
  EXPECT_GT(usual, (512 + 330 + 89) * kMiB);
  options.max_num_batched_tokens = 8192;
  EXPECT_GT(working(options, spec) - usual, 3 * 329'000'000);
  options.max_num_batched_tokens = 2048;
  options.max_num_seqs = 256;
  EXPECT_GT(working(options, spec) - usual, 2 * 192 * 152'064 * 4) << "logits";
  options.max_num_seqs = 1;
  options.max_num_batched_tokens = INT32_MAX;
  EXPECT_LT(working(options, spec), int64_t{40} << 30) << "a step has one sequence at most";
}

TEST(GpuMemory, IntegerProductsNeedMemoryForSums) {
  EngineOptions options;
  const models::ModelSpec spec = large_model(false);
  const int64_t floats = gpu_working_bytes(options, spec, at::kBFloat16, false),
                integers = gpu_working_bytes(options, spec, at::kBFloat16, true);
  // Sums of gate and up for 2,048 tokens, and 512 of captured steps: 388 MB.
  EXPECT_GT(integers - floats, 387'000'000);
  EXPECT_LT(integers - floats, 387'000'000 * 5 / 4 + kMiB * 16);
}

TEST(GpuMemory, TowersCountIfTheModelTakesImages) {
  EngineOptions options;
  options.max_num_batched_tokens = 64;
  const int64_t text = working(options, large_model(false)),
                images = working(options, large_model(true));
  EXPECT_GT(images - text, 300 * kMiB);
  EXPECT_LT(images, 1200 * kMiB);
  models::ModelSpec spec = large_model(true);
  spec.image_token.reset();
  EXPECT_EQ(working(options, spec), text);
}

TEST(GpuMemory, HugeNumbersSaturate) {
  EngineOptions options;
  options.max_num_seqs = options.max_num_batched_tokens = INT32_MAX;
  models::ModelSpec spec = large_model(true);
  spec.hidden = spec.vocab = spec.max_positions = int64_t{1} << 50;
  EXPECT_GT(working(options, spec), int64_t{1} << 62);
}

TEST(GpuMemory, PoolWithoutWorkingRoomIsRefusedWithNumbers) {
  EngineOptions options;
  const models::ModelSpec spec = large_model(true);
  const BlockSizes sizes{kMiB, kMiB};
  const int64_t free = 20'000 * kMiB, kept = working(options, spec);
  options.memory.pool_bytes = free - 64 * kMiB;
  options.max_model_len = 4096;
  EXPECT_TRUE(plan_memory(options, spec, sizes, free).ok()) << "on a CPU";
  const auto refused = plan_memory(options, spec, sizes, free, kept);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().param, "pool_memory");
  for (const int64_t number : {free - 64 * kMiB, free, kept, free - kept})
    EXPECT_NE(refused.error().message.find(std::to_string(number)), std::string::npos)
        << refused.error().message;
  options.memory.pool_bytes = free - kept;
  EXPECT_TRUE(plan_memory(options, spec, sizes, free, kept).ok());
  options.memory.pool_bytes.reset();
  EXPECT_LE(plan_memory(options, spec, sizes, free, kept)->blocks, (free - kept) / 4 / kMiB);
}

TEST(GpuMemory, WorkingMemoryEstimateAloneDoesNotPreventStart) {
  EngineOptions options;
  const models::ModelSpec spec = large_model(true);
  const BlockSizes sizes{kMiB, kMiB};
  const int64_t kept = working(options, spec), free = kept - 1;
  const auto plan = plan_memory(options, spec, sizes, free, kept);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->blocks, free / 8 / kMiB);
  EXPECT_NE(plan->notes[0].find(std::to_string(kept)), std::string::npos);
  options.memory.pool_bytes = 100 * kMiB;
  const auto refused = plan_memory(options, spec, sizes, free, kept);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().param, "pool_memory");
}

}  // namespace
}  // namespace valora
