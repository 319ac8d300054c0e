#include "engine/memory/memory_plan.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/testing/temp_dir.h"
#include "engine/start/start_notes.h"

namespace valora {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kBytes = 1000;
constexpr BlockSizes kBlock{kBytes, kBytes};

models::ModelSpec model_of(int64_t positions) {
  models::ModelSpec spec;
  spec.max_positions = positions;
  return spec;
}

TEST(MemoryPlan, DefaultHoldsAllSequencesWithinQuarterOfMemory) {
  EngineOptions options;
  options.max_num_seqs = 3;
  const auto roomy = plan_memory(options, model_of(33), kBlock, 1'000'000);
  EXPECT_EQ(roomy->blocks, 13);  // three blocks per sequence, plus 50 %
  EXPECT_EQ(roomy->max_model_len, 33);
  const auto tight = plan_memory(options, model_of(33), kBlock, 4 * 5 * kBytes);
  EXPECT_EQ(tight->blocks, 5);
  EXPECT_TRUE(tight->notes.empty());
}

TEST(MemoryPlan, DefaultLengthIsLoweredWithNote) {
  const auto plan = plan_memory({}, model_of(1000), kBlock, 4 * 5 * kBytes + 3);
  EXPECT_EQ(plan->blocks, 5);
  EXPECT_EQ(plan->max_model_len, 80);
  ASSERT_EQ(plan->notes.size(), 1);
  EXPECT_NE(plan->notes[0].find("lowered from 1000 to 80"), std::string::npos);
  EXPECT_NE(plan->notes[0].find("63000"), std::string::npos);
}

TEST(MemoryPlan, UnsatisfiableOptionIsRefusedWithBytes) {
  EngineOptions options;
  options.max_model_len = 100;
  options.memory.pool_bytes = 6 * kBytes;
  const auto short_of = plan_memory(options, model_of(1000), kBlock, 1'000'000);
  ASSERT_FALSE(short_of.ok());
  EXPECT_EQ(short_of.error().param, "pool_memory");
  EXPECT_NE(short_of.error().message.find("7000"), std::string::npos);
  options.memory.pool_bytes = 7 * kBytes;
  EXPECT_EQ(plan_memory(options, model_of(1000), kBlock, 1'000'000)->max_model_len, 100);
  EXPECT_EQ(plan_memory(options, model_of(99), kBlock, 1'000'000).error().param, "max_model_len");
  options.max_model_len = 0;
  EXPECT_EQ(plan_memory(options, model_of(99), kBlock, 1'000'000).error().param, "max_model_len");
  options.max_model_len.reset();
  for (const int64_t bytes : {kBytes - 1, int64_t{0}, int64_t{-5}}) {
    options.memory.pool_bytes = bytes;
    EXPECT_EQ(plan_memory(options, model_of(99), kBlock, 1'000'000).error().param, "pool_memory");
  }
}

// A sequence takes blocks for its state in addition to those for its tokens.
TEST(MemoryPlan, EverySequenceHasRoomForItsState) {
  constexpr BlockSizes kWithState{kBytes, kBytes, 4};
  EngineOptions options;
  options.max_num_seqs = 3;
  const auto roomy = plan_memory(options, model_of(33), kWithState, 1'000'000);
  EXPECT_EQ(roomy->blocks, 31);  // 3 + 4 blocks per sequence, plus 50 %
  EXPECT_EQ(roomy->state_blocks, 4);
  options.memory.pool_bytes = 6 * kBytes;
  const auto lowered = plan_memory(options, model_of(33), kWithState, 1'000'000);
  EXPECT_EQ(lowered->max_model_len, 32);
  options.max_model_len = 33;
  EXPECT_EQ(plan_memory(options, model_of(33), kWithState, 1'000'000).error().param, "pool_memory");
  options.memory.pool_bytes = 7 * kBytes;
  options.memory.swap_bytes = 20 * kBytes;
  const auto exact = plan_memory(options, model_of(33), kWithState, 1'000'000);
  EXPECT_EQ(exact->max_model_len, 33);
  EXPECT_EQ(exact->swap_blocks, 0);
  ASSERT_EQ(exact->notes.size(), 1u);
  EXPECT_NE(exact->notes[0].find("--swap-space has no effect"), std::string::npos);
  options.max_model_len.reset();
  options.memory.pool_bytes = 4 * kBytes;
  EXPECT_EQ(plan_memory(options, model_of(33), kWithState, 1'000'000).error().param, "pool_memory");
}

TEST(MemoryPlan, BlocksHoldThePartsOfAState) {
  models::ModelSpec spec;
  spec.layers = 24, spec.kv_heads = 2, spec.head_dim = 256, spec.hidden = 1024;
  const int64_t plain = block_sizes(spec, 16, at::kBFloat16, ops::KvFormat::kPlain, at::kCPU).kv;
  spec.state = {.layers = 18,
                .taps = 4,
                .key_heads = 16,
                .value_heads = 16,
                .key_dim = 128,
                .value_dim = 128};
  const BlockSizes sizes = block_sizes(spec, 16, at::kBFloat16, ops::KvFormat::kPlain, at::kCPU);
  EXPECT_EQ(4 * sizes.kv, plain) << "six layers have keys and values";
  const int64_t state = 18 * (3 * 6144 * 2 + 16 * 128 * 128 * 4);
  EXPECT_GE(sizes.state_blocks * sizes.pool, state);
  EXPECT_LT(sizes.state_blocks * sizes.pool, state + state / 8);
  spec.state.key_dim = 1024;  // one matrix exceeds a KV block
  const BlockSizes large = block_sizes(spec, 16, at::kBFloat16, ops::KvFormat::kPlain, at::kCPU);
  EXPECT_GE(large.pool, 1024 * 128 * 4);
}

// 1.9 times as many tokens, although adapter panels on wide inputs exceed a KV block.
TEST(MemoryPlan, BlocksInEightBitsAreHalfAsLarge) {
  struct Sizes {
    int64_t layers, kv_heads, head_dim, hidden, inner;
  };
  for (const Sizes& s : {Sizes{28, 2, 128, 1536, 8960},
                         {28, 4, 128, 3584, 18944},
                         {36, 8, 128, 2560, 9728},
                         {30, 3, 64, 576, 1536}}) {
    models::ModelSpec spec;
    spec.layers = s.layers, spec.kv_heads = s.kv_heads, spec.head_dim = s.head_dim;
    spec.hidden = s.hidden;
    spec.modules = adapters::ModuleTable({{.name = "down_proj", .in = s.inner, .out = s.hidden}},
                                         {}, s.hidden);
    const auto block = [&](ops::KvFormat format) {
      return block_sizes(spec, 256, at::kBFloat16, format, at::kCPU);
    };
    const BlockSizes plain = block(ops::KvFormat::kPlain), int8 = block(ops::KvFormat::kInt8);
    EXPECT_GE(static_cast<double>(plain.pool), 1.9 * static_cast<double>(int8.pool)) << s.inner;
    EXPECT_EQ(int8.kv, s.layers * s.kv_heads * 16 * (2 * s.head_dim + 4));
    EXPECT_EQ(block(ops::KvFormat::kFp8).pool, int8.pool);
  }
}

TEST(MemoryPlan, EightBitCacheNeedsNativeKernels) {
  EngineOptions options;
  EXPECT_TRUE(check_kv_format(options, at::kHalf, at::Device(at::kCUDA, 0)).ok());
  options.kv_cache_dtype = KvCacheDtype::kInt8;
  EXPECT_TRUE(check_kv_format(options, at::kFloat, at::kCPU).ok());
  const Status on_gpu = check_kv_format(options, at::kBFloat16, at::Device(at::kCUDA, 0));
  ASSERT_FALSE(on_gpu.ok());
  EXPECT_NE(on_gpu.error().message.find("--kv-cache-dtype int8"), std::string::npos);
  EXPECT_NE(on_gpu.error().message.find("no kernels for GPUs"), std::string::npos);
}

TEST(MemoryPlan, CachesOfMediaCountIfTheModelTakesMedia) {
  EngineOptions options;
  options.media_cache_bytes = 600;
  options.visual_cache_bytes = 300;
  models::ModelSpec spec = model_of(100);
  EXPECT_EQ(*plan_caches(options, spec, true, 100), 0);
  spec.image_token = 7;
  EXPECT_EQ(*plan_caches(options, spec, true, 900), 900);
  EXPECT_EQ(*plan_caches(options, spec, false, 300), 300) << "pixels are not on the device";
  const auto refused = plan_caches(options, spec, true, 899);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().param, "visual_cache");
  EXPECT_NE(refused.error().message.find("899"), std::string::npos);
  EXPECT_EQ(plan_caches(options, spec, true, 599).error().param, "media_cache");
  EXPECT_FALSE(plan_caches(options, spec, true, -5).ok());
  options.media_cache_bytes = SIZE_MAX;
  EXPECT_FALSE(plan_caches(options, spec, true, 1'000'000).ok());
}

TEST(MemoryPlan, FreeMemoryIsAtMostWhatAGroupLeaves) {
  testing::TempDir root;
  for (const char* folder : {"proc", "sys/fs/cgroup"})
    std::filesystem::create_directories(root.file(folder));
  root.write("proc/meminfo", "MemTotal:  9000 kB\nMemFree: 1 kB\nMemAvailable:  8000 kB\n");
  EXPECT_EQ(host_memory(root.path()).available, 8000 * 1024);
  root.write("sys/fs/cgroup/memory.max", "5000000\n");
  root.write("sys/fs/cgroup/memory.current", "3000000\n");
  root.write("sys/fs/cgroup/memory.stat", "anon 1\nactive_file 300000\ninactive_file 200000\n");
  const HostMemory limited = host_memory(root.path());
  EXPECT_EQ(limited.available, 2'500'000);
  ASSERT_TRUE(limited.limit);
  EXPECT_THAT(group_notes({}, root.path()),
              ElementsAre(HasSubstr("4 MiB was found (/sys/fs/cgroup/memory.max)")));
  root.write("sys/fs/cgroup/memory.max", "50000000\n");
  EXPECT_EQ(host_memory(root.path()).available, 8000 * 1024);
  EXPECT_THAT(group_notes({}, root.path()), IsEmpty()) << "it decides nothing";
}

TEST(MemoryPlan, QuotaIsNotedUnlessThreadsAreGiven) {
  testing::TempDir root;
  std::filesystem::create_directories(root.file("sys/fs/cgroup"));
  root.write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_THAT(group_notes({}, root.path()),
              ElementsAre(HasSubstr("0.5 CPUs was found (/sys/fs/cgroup/cpu.max): 1 compute "
                                    "thread by default")));
  EngineOptions options;
  options.threads = 2;
  EXPECT_THAT(group_notes(options, root.path()), IsEmpty());
}

TEST(MemoryPlan, DefaultCachesFitIntoLittleMemory) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  EngineOptions options;
  options.visual_cache_bytes = 100 * kMiB;  // asked for
  EXPECT_EQ(with_fitting_caches(options, 80 * kMiB).media_cache_bytes, 10 * kMiB);
  EXPECT_EQ(with_fitting_caches(options, 80 * kMiB).visual_cache_bytes, 100 * kMiB);
  EXPECT_EQ(with_fitting_caches({}, 80 * kMiB).visual_cache_bytes, 10 * kMiB);
  EXPECT_EQ(with_fitting_caches({}, 8192 * kMiB).media_cache_bytes, 512 * kMiB);
  EXPECT_EQ(with_fitting_caches({}, -1).media_cache_bytes, 0);
}

TEST(MemoryPlan, PoolBeyondFreeMemoryIsRefusedBeforeAllocating) {
  EngineOptions options;
  options.memory.pool_bytes = 2'000'000;
  const auto plan = plan_memory(options, model_of(100), kBlock, 1'000'000);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().param, "pool_memory");
}

TEST(MemoryPlan, HugeNumbersDoNotOverflow) {
  EngineOptions options;
  options.max_num_seqs = INT32_MAX;
  const auto plan = plan_memory(options, model_of(int64_t{1} << 30),
                                {int64_t{1} << 40, int64_t{1} << 40}, int64_t{1} << 44);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->blocks, 4);
}

TEST(MemoryPlan, ShadowThatDoesNotFitIsRefusedWithMissingBytes) {
  EXPECT_TRUE(check_shadow("merged", 1000, 1000, false).ok());
  const Status lacking = check_shadow("mixture", 1000, 900, false);
  ASSERT_FALSE(lacking.ok());
  EXPECT_EQ(lacking.error().code, ErrorCode::kInvalidArgument);
  for (const char* part : {"--scheduling-policy mixture", "--merge inplace", "1000", "100 more"})
    EXPECT_NE(lacking.error().message.find(part), std::string::npos) << lacking.error().message;
  const Status integers = check_shadow("mixture", 1000, 900, true);
  ASSERT_FALSE(integers.ok());
  EXPECT_EQ(integers.error().message.find("inplace"), std::string::npos)
      << integers.error().message;
}

TEST(MemoryPlan, SwapSpaceCountsWholeBlocks) {
  EngineOptions options;
  options.memory.pool_bytes = 40 * kBytes;
  options.memory.swap_bytes = 7 * kBytes + 999;
  const auto plan = plan_memory(options, model_of(320), kBlock, 1'000'000);
  EXPECT_EQ(plan->swap_blocks, 7);
  EXPECT_EQ(plan->kept_limit, 10);  // a quarter; a sequence of 20 blocks still fits
  options.memory.swap_bytes = -1;
  EXPECT_EQ(plan_memory(options, model_of(320), kBlock, 1'000'000).error().param, "swap_space");
}

TEST(MemoryPlan, PackedAdaptersOfAGpuServerFitIntoTheHost) {
  MemoryOptions options;
  const int64_t gib = int64_t{1} << 30;
  EXPECT_EQ(*plan_adapter_cache(options, 100 * gib), 4 * gib);
  EXPECT_EQ(*plan_adapter_cache(options, 8 * gib), 2 * gib);
  options.swap_bytes = 7 * gib;
  EXPECT_EQ(*plan_adapter_cache(options, 8 * gib), gib / 4);
  EXPECT_EQ(plan_adapter_cache(options, 6 * gib).error().param, "swap_space");
  options.adapter_cache_bytes = 2 * gib;
  const auto refused = plan_adapter_cache(options, 8 * gib);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().param, "adapter_cache");
  EXPECT_NE(refused.error().message.find("8589934592"), std::string::npos);
  options.adapter_cache_bytes = -1;
  EXPECT_FALSE(plan_adapter_cache(options, 8 * gib).ok());
}

}  // namespace
}  // namespace valora
