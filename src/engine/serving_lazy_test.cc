// Adapters loaded by their headers only: their values are read with the first request.
#include <filesystem>
#include <fstream>

#include "engine/testing/engine_fixture.h"

namespace valora {
namespace {

using namespace testing;

class LazyTest : public EngineTest {
 protected:
  void write_adapters(int count) {
    for (int i = 0; i < count; ++i) {
      folders_.push_back(std::make_unique<TempDir>());
      write_tiny_adapter(*folders_.back(), 100 + i);
    }
  }
  static std::string name(int i) { return "a" + std::to_string(i); }
  Result<AdapterCard> load_lazily(int i) {
    return load({.name = name(i), .path = folders_[i]->path(), .lazy = true});
  }
  void start_with_blocks(int blocks) {
    options_.memory.pool_bytes = blocks * kTinyBlockBytes;
    start();
  }
  static GenerateRequest request(int i) {
    GenerateRequest request = ask(numbered_prompt(30, i), 6);
    request.adapters = {{name(i), 1}};
    return request;
  }
  std::string file(int i) const { return folders_[i]->file("adapter_model.safetensors"); }
  // Overwrites the last value with NaN.
  void break_values(int i) {
    std::fstream stream(file(i), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(-4, std::ios::end);
    stream.write("\0\0\xc0\x7f", 4);
  }

  std::vector<std::unique_ptr<TempDir>> folders_;
};

TEST_F(LazyTest, LazyAdaptersAnswerLikeEagerOnes) {
  constexpr int kAdapters = 30;
  write_adapters(kAdapters);
  start_with_blocks(400);
  std::vector<std::vector<int32_t>> expected;
  for (int i = 0; i < kAdapters; ++i) {
    ASSERT_TRUE(load(name(i), folders_[i]->path()).ok());
    expected.push_back(tokens_of(request(i)));
  }
  start_with_blocks(24);
  for (int i = 0; i < kAdapters; ++i) {
    const auto card = load_lazily(i);
    ASSERT_TRUE(card.ok()) << card.error().message;
  }
  for (const AdapterCard& card : engine_->adapters()) EXPECT_EQ(card.place, WeightsPlace::kFile);
  std::vector<std::shared_ptr<WaitingSink>> sinks;
  for (int i = 0; i < 2 * kAdapters; ++i) sinks.push_back(submit(request(i % kAdapters)));
  for (int i = 0; i < 2 * kAdapters; ++i)
    EXPECT_EQ(sinks[i]->wait().first().tokens, expected[i % kAdapters]) << i;
  EXPECT_GE(engine_->stats().memory.loads.moves, static_cast<uint64_t>(kAdapters));
}

TEST_F(LazyTest, BadValuesFailRequestsOnFirstUse) {
  write_adapters(2);
  break_values(0);
  start_with_blocks(40);
  ASSERT_TRUE(load_lazily(0).ok());
  ASSERT_TRUE(load_lazily(1).ok());
  for (int round = 0; round < 2; ++round) {
    const auto broken = submit(request(0)), fine = submit(request(1));
    const Answer answer = broken->wait();
    ASSERT_TRUE(answer.error);
    EXPECT_EQ(answer.error->code, ErrorCode::kUnprocessable);
    EXPECT_NE(answer.error->message.find("not finite"), std::string::npos) << answer.error->message;
    EXPECT_FALSE(fine->wait().error);
  }
}

TEST_F(LazyTest, FolderChangedBeforeFirstUseIsRefused) {
  write_adapters(3);
  start_with_blocks(40);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(load_lazily(i).ok());
  std::filesystem::remove_all(folders_[0]->path());
  std::filesystem::remove(file(1));
  write_tiny_adapter(*folders_[1], 999);
  EXPECT_EQ(run(request(0)).error->code, ErrorCode::kNotFound);
  EXPECT_EQ(run(request(1)).error->code, ErrorCode::kConflict);
  EXPECT_FALSE(run(request(2)).error);
  // After reloading, the new content is used.
  ASSERT_TRUE(
      load({.name = name(1), .path = folders_[1]->path(), .replace = true, .lazy = true}).ok());
  EXPECT_FALSE(run(request(1)).error);
}

TEST_F(LazyTest, AfterFirstUseOnlyContentMatters) {
  write_adapters(2);
  start_with_blocks(20);
  ASSERT_TRUE(load_lazily(0).ok());
  const auto tokens = tokens_of(request(0));
  press();
  EXPECT_NE(engine_->adapters()[0].place, WeightsPlace::kPool);
  // The same content in a new file.
  std::filesystem::copy_file(file(0), folders_[0]->file("copy"));
  std::filesystem::rename(folders_[0]->file("copy"), file(0));
  EXPECT_EQ(tokens_of(request(0)), tokens);
  press();
  std::filesystem::copy_file(file(1), file(0), std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(run(request(0)).error->code, ErrorCode::kConflict);
}

TEST_F(LazyTest, LazyAdapterMergesOnceValuesAreRead) {
  write_adapters(1);
  options_.scheduling.policy = "merged";
  std::vector<int32_t> tokens;
  const auto merges_of = [&](int requests, bool lazy) {
    start_with_blocks(60);
    EXPECT_TRUE(load({.name = name(0), .path = folders_[0]->path(), .lazy = lazy}).ok());
    for (int i = 0; i < requests; ++i) {
      const auto answer = tokens_of(request(0));
      if (tokens.empty()) tokens = answer;
      EXPECT_EQ(answer, tokens);
    }
    drain();
    return engine_->stats().merges;
  };
  EXPECT_EQ(merges_of(1, false), 1u);
  // The first request runs unmerged if its prompt is ready before the adapter's values.
  EXPECT_LE(merges_of(1, true), 1u);
  EXPECT_EQ(merges_of(2, true), 1u);
}

}  // namespace
}  // namespace valora
