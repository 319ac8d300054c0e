// An engine whose pool is far too small for its adapters and conversations: answers stay correct,
// and faults affect only their own requests.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "engine/testing/engine_fixture.h"
#include "serving/loop/core.h"

namespace valora {
namespace {

using namespace testing;

struct CrowdedSetting {
  std::string name;
  std::string policy = "unmerged";
  std::function<void(memory::PoolConfig&)> change = [](memory::PoolConfig&) {};
};

class MemoryTest : public EngineTest {
 protected:
  static constexpr int kAdapters = 200;

  void write_adapters(int count = kAdapters) {
    for (int i = 0; i < count; ++i) {
      folders_.push_back(std::make_unique<TempDir>());
      write_tiny_adapter(*folders_.back(), 100 + i);
    }
  }
  static std::string name(int i) { return "a" + std::to_string(i); }
  void load_all() {
    for (size_t i = 0; i < folders_.size(); ++i)
      ASSERT_TRUE(load(name(static_cast<int>(i)), folders_[i]->path()).ok());
  }
  void start_with_blocks(int blocks, int swap_blocks = 0) {
    options_.memory.pool_bytes = blocks * kTinyBlockBytes;
    options_.memory.swap_bytes = swap_blocks * kTinyBlockBytes;
    start();
  }
  // Cycles through single adapters, scaled ones, sums, and the base model.
  GenerateRequest request(int i) const {
    GenerateRequest request = ask(numbered_prompt(35 + i % 3 * 20, i % 7), 8);
    if (i % 11 == 10) return request;
    request.adapters = {{name(i % kAdapters), i % 5 == 4 ? 0.5F : 1.0F}};
    if (i % 9 == 8) request.adapters.push_back({name((i + 1) % kAdapters), 1});
    return request;
  }
  bool resident(const std::string& adapter) const {
    for (const AdapterCard& card : engine_->adapters())
      if (card.name == adapter) return card.place == WeightsPlace::kPool;
    return false;
  }

  std::vector<std::unique_ptr<TempDir>> folders_;
};

class CrowdedTest : public MemoryTest, public ::testing::WithParamInterface<CrowdedSetting> {};

TEST_P(CrowdedTest, AnswersEqualThoseWithoutContention) {
  constexpr int kRequests = 256;  // at once
  write_adapters();
  start_with_blocks(1000);
  load_all();
  std::vector<std::vector<int32_t>> alone;
  for (int i = 0; i < kRequests; ++i) alone.push_back(tokens_of(request(i)));
  engine_.reset();

  options_.scheduling.policy = GetParam().policy;
  options_.max_model_len = 240;
  changes_.core = [](serving::CoreConfig& core) {
    GetParam().change(core.pool);
    return Status();
  };
  start_with_blocks(70, 100);  // 400 blocks of adapters, 600 of conversations
  load_all();
  std::vector<int> order(kRequests);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(5);
  for (int round = 0; round < 2; ++round) {
    std::ranges::shuffle(order, random);
    std::vector<std::shared_ptr<WaitingSink>> sinks;
    for (const int i : order) sinks.push_back(submit(request(i)));
    for (int k = 0; k < kRequests; ++k)
      ASSERT_EQ(sinks[k]->wait().first().tokens, alone[order[k]]) << order[k];
  }
  drain();
  const MemoryStats memory = engine_->stats().memory;
  EXPECT_GT(memory.loads.moves, 100u);
  EXPECT_EQ(memory.loads.failed + memory.reads.failed + memory.writes.failed, 0u);
  EXPECT_EQ(memory.running_blocks, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, CrowdedTest,
    ::testing::Values(
        CrowdedSetting{"learned"}, CrowdedSetting{"mixture", "mixture"},
        CrowdedSetting{"merged", "merged"},
        CrowdedSetting{"dependencies", "unmerged",
                       [](memory::PoolConfig& c) { c.dependencies = true; }},
        CrowdedSetting{"fixed_share", "unmerged",
                       [](memory::PoolConfig& c) { c.adapter_blocks = 10, c.kept_limit = 5; }},
        CrowdedSetting{"no_history", "unmerged", [](memory::PoolConfig& c) { c.history = false; }}),
    [](const auto& info) { return info.param.name; });

TEST_F(MemoryTest, EvictedConversationFindsPrefixInSwap) {
  start_with_blocks(20, 100);
  const GenerateRequest turn = ask(numbered_prompt(100, 3), 4);
  const auto tokens = run_slowly(turn).first().tokens;
  press();
  EXPECT_GT(engine_->stats().memory.swap_used, 0);
  const Answer again = run(turn);
  EXPECT_EQ(again.first().tokens, tokens);
  EXPECT_EQ(again.done->usage.cached_tokens, 96);
  drain();
  EXPECT_GE(engine_->stats().memory.swapped_tokens, 16u);
}

// The process's swap files, as other programs find them.
std::vector<std::string> open_swap_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    const std::string target = std::filesystem::read_symlink(entry.path(), closed).string();
    if (target.find("/valora-swap-") != target.npos) files.push_back(entry.path());
  }
  return files;
}

// Later writes to the file make it long again, with zeros where its blocks were.
TEST_F(MemoryTest, KvThatTheSwapFileLostIsComputedAgain) {
  for (const int ranks : {1, 2}) {
    options_.tensor_parallel_size = ranks;
    options_.threads = ranks;
    start_with_blocks(20, 100);
    std::vector<GenerateRequest> turns;
    std::vector<std::vector<int32_t>> tokens;
    for (int i = 0; i < 3; ++i) turns.push_back(ask(numbered_prompt(100, 3 + i), 4));
    for (const GenerateRequest& turn : turns) tokens.push_back(run_slowly(turn).first().tokens);
    press();
    const MemoryStats before = engine_->stats().memory;
    EXPECT_GT(before.swap_used, 0);
    const auto files = open_swap_files();
    ASSERT_EQ(files.size(), static_cast<size_t>(ranks));
    // With two ranks, the first one's part is whole.
    ASSERT_EQ(truncate(files.back().c_str(), 0), 0);
    ASSERT_EQ(truncate(files.back().c_str(), 100 * kTinyBlockBytes / ranks), 0);
    for (int round = 0; round < 2; ++round)
      for (size_t i = 0; i < turns.size(); ++i) {
        EXPECT_EQ(run_slowly(turns[i]).first().tokens, tokens[i]) << i;
        press();
      }
    drain();
    EXPECT_GT(engine_->stats().memory.reads.failed, before.reads.failed);
    EXPECT_EQ(engine_->check(), "");
    engine_.reset();
  }
}

TEST_F(MemoryTest, AdapterLoadsOnDemandAndIsEvictedUnderPressure) {
  write_adapters(1);
  start_with_blocks(20);
  load_all();
  const GenerateRequest request = this->request(0);
  const auto tokens = tokens_of(request);
  EXPECT_TRUE(resident("a0"));
  press();
  EXPECT_FALSE(resident("a0"));
  EXPECT_EQ(tokens_of(request), tokens);
}

TEST_F(MemoryTest, MissingOrChangedFilesFailOnlyTheirRequests) {
  write_adapters(3);
  start_with_blocks(20);
  load_all();
  const auto third = tokens_of(request(2));
  press();
  std::filesystem::remove_all(folders_[0]->path());
  write_tiny_adapter(*folders_[1], 999);
  const auto gone = submit(request(0)), changed = submit(request(1)), fine = submit(request(2));
  const Answer none = gone->wait(), other = changed->wait();
  ASSERT_TRUE(none.error);
  EXPECT_EQ(none.error->code, ErrorCode::kNotFound);
  EXPECT_EQ(none.error->message.find(folders_[0]->path()), std::string::npos) << "clients see it";
  ASSERT_TRUE(other.error);
  EXPECT_EQ(other.error->code, ErrorCode::kConflict);
  EXPECT_NE(other.error->message.find("has changed"), std::string::npos);
  EXPECT_EQ(fine->wait().first().tokens, third);
  // After reloading, the name answers with the new content.
  EXPECT_TRUE(load(name(1), folders_[1]->path(), true).ok());
  EXPECT_FALSE(run(request(1)).error);
}

TEST_F(MemoryTest, FolderReplacedByLinkOutOfRootIsNotReread) {
  namespace fs = std::filesystem;
  const TempDir root, outside;
  const auto copy = [](const std::string& from, const std::string& to) {
    fs::copy(from, to, fs::copy_options::recursive);
  };
  write_adapters(1);
  copy(folders_[0]->path(), outside.file("same"));
  copy(folders_[0]->path(), root.file("adapter"));
  start_with_blocks(20);
  ASSERT_TRUE(load({.name = name(0), .path = root.file("adapter"), .root = root.path()}).ok());
  const auto tokens = tokens_of(request(0));
  press();
  EXPECT_EQ(tokens_of(request(0)), tokens) << "read again";
  press();
  fs::remove_all(root.file("adapter"));
  fs::create_directory_symlink(outside.file("same"), root.file("adapter"));
  EXPECT_TRUE(run(request(0)).error) << "the content is the same, but outside";
}

TEST_F(MemoryTest, AdapterReplacedUnderLoadUsesNewContent) {
  write_adapters(8);
  TempDir first, second;
  write_tiny_adapter(first, 501);
  write_tiny_adapter(second, 502);
  start_with_blocks(24, 40);
  load_all();
  GenerateRequest request = ask(numbered_prompt(50, 9), 6);
  request.adapters = {{"changing", 1}};
  std::vector<std::vector<int32_t>> answers;
  for (const TempDir* folder : {&first, &second}) {
    ASSERT_TRUE(load("changing", folder->path(), true).ok());
    answers.push_back(tokens_of(request));
  }
  ASSERT_NE(answers[0], answers[1]);
  for (int round = 0; round < 12; ++round) {
    std::vector<std::shared_ptr<WaitingSink>> noise;
    for (int i = 0; i < 12; ++i) {
      GenerateRequest other = ask(numbered_prompt(40, i), 6);
      other.adapters = {{name(i % 8), 1}};
      noise.push_back(submit(other));
    }
    ASSERT_TRUE(load("changing", (round % 2 ? second : first).path(), true).ok());
    EXPECT_EQ(tokens_of(request), answers[round % 2]) << round;
    for (const auto& sink : noise) EXPECT_FALSE(sink->wait().error);
  }
}

TEST_F(MemoryTest, OversizedRequestIsRefusedWithBytes) {
  write_adapters(3);
  options_.max_model_len = 32;
  start_with_blocks(2);
  const auto large = load(name(0), folders_[0]->path());
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code, ErrorCode::kUnprocessable);
  EXPECT_NE(large.error().message.find(std::to_string(2 * kTinyBlockBytes)), std::string::npos);
  start_with_blocks(4);
  load_all();
  // Each adapter fits together with its tokens, but not a sum of two.
  GenerateRequest sum = ask(numbered_prompt(8, 1), 4);
  sum.adapters = {{name(0), 1}};
  EXPECT_FALSE(run(sum).error);
  sum.adapters = {{name(0), 1}, {name(1), 1}};
  const Answer refused = run(sum);
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::kUnprocessable);
}

TEST_F(MemoryTest, PinnedAdaptersStayUpToTheirShare) {
  write_adapters(3);
  options_.max_model_len = 160;
  start_with_blocks(20);  // a quarter of 20 for pinned adapters: two of 2 blocks
  for (const int i : {0, 1})
    ASSERT_TRUE(load({.name = name(i), .path = folders_[i]->path(), .pinned = true}).ok());
  const auto third = load({.name = name(2), .path = folders_[2]->path(), .pinned = true});
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, ErrorCode::kUnavailable);
  ASSERT_TRUE(load(name(2), folders_[2]->path()).ok());
  run(request(0));
  run(request(1));
  for (int i = 0; i < 3; ++i) run(ask(numbered_prompt(150, 40 + 50 * i), 1));
  EXPECT_TRUE(resident("a0") && resident("a1"));
  ASSERT_TRUE(unload("a0").ok());
  EXPECT_TRUE(
      load({.name = name(2), .path = folders_[2]->path(), .replace = true, .pinned = true}).ok());
}

TEST_F(MemoryTest, FailedLoadPinsNothing) {
  write_adapters(2);
  options_.max_model_len = 160;
  start_with_blocks(12);  // a quarter for pinned adapters: one of 2 blocks
  const auto unknown_head =
      load({.name = name(0), .path = folders_[0]->path(), .head = "none", .pinned = true});
  ASSERT_FALSE(unknown_head.ok());
  const auto second = load({.name = name(1), .path = folders_[1]->path(), .pinned = true});
  EXPECT_TRUE(second.ok()) << second.error().message;
  // A refused load of the same content under another name: it stays pinned.
  ASSERT_FALSE(
      load({.name = "b", .path = folders_[1]->path(), .head = "none", .pinned = true}).ok());
  run(request(1));
  for (int i = 0; i < 3; ++i) run(ask(numbered_prompt(150, 40 + 50 * i), 1));
  EXPECT_TRUE(resident("a1"));
}

}  // namespace
}  // namespace valora
