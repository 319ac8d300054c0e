#include "text/models/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Json kNoPatch = Json::object();

std::vector<int32_t> tokenize(const Json& patch, std::string_view piece) {
  Json json = {{"type", "BPE"},
               {"vocab",
                {{"a", 0},
                 {"b", 1},
                 {"c", 2},
                 {"ab", 3},
                 {"bc", 4},
                 {"aa", 5},
                 {"aaaa", 6},
                 {"?", 7},
                 {"abc", 8}}},
               {"merges", {"b c", "a b", "a a", "aa aa"}}};
  json.merge_patch(patch);
  const auto model = make_bpe(json, "model");
  EXPECT_TRUE(model.ok()) << model.error().message;
  std::vector<int32_t> ids;
  (*model)->tokenize(piece, ids);
  std::vector<int32_t> again;
  (*model)->tokenize(piece, again);
  EXPECT_EQ(ids, again);  // now from the word cache
  return ids;
}

TEST(Bpe, MergesTheLowestRankFirstThenFromTheLeft) {
  EXPECT_THAT(tokenize(kNoPatch, "abc"), ElementsAre(0, 4));
  EXPECT_THAT(tokenize(kNoPatch, "abab"), ElementsAre(3, 3));
  EXPECT_THAT(tokenize(kNoPatch, "aaa"), ElementsAre(5, 0));
  EXPECT_THAT(tokenize(kNoPatch, "aaaaaaa"), ElementsAre(6, 5, 0));
  EXPECT_THAT(tokenize(kNoPatch, "c"), ElementsAre(2));
}

TEST(Bpe, TakesWholePiecesWhenMergesAreIgnored) {
  EXPECT_THAT(tokenize({{"ignore_merges", true}}, "abc"), ElementsAre(8));
  EXPECT_THAT(tokenize({{"ignore_merges", true}}, "abcc"), ElementsAre(0, 4, 2));
}

TEST(Bpe, DropsReplacesOrFusesUnknownCharacters) {
  EXPECT_THAT(tokenize(kNoPatch, "a字字b"), ElementsAre(3));
  EXPECT_THAT(tokenize({{"unk_token", "?"}}, "a字字b"), ElementsAre(0, 7, 7, 1));
  EXPECT_THAT(tokenize({{"unk_token", "?"}, {"fuse_unk", true}}, "字字b字"), ElementsAre(7, 1, 7));
  EXPECT_THAT(tokenize(kNoPatch, "字"), IsEmpty());
}

// é is C3 A9, ö is C3 B6.
TEST(Bpe, FallsBackToBytesWhereAllHaveTokens) {
  const Json patch = {
      {"byte_fallback", true}, {"unk_token", "?"}, {"vocab", {{"<0xC3>", 9}, {"<0xA9>", 10}}}};
  EXPECT_THAT(tokenize(patch, "aéb"), ElementsAre(0, 9, 10, 1));
  EXPECT_THAT(tokenize(patch, "aöb"), ElementsAre(0, 7, 1));
  // An unknown character comes after the byte tokens that follow it, as in the reference.
  EXPECT_THAT(tokenize(patch, "öéb"), ElementsAre(9, 10, 7, 1));
  EXPECT_THAT(tokenize(patch, "öéö"), ElementsAre(9, 10, 7, 7));
  Json fused = patch;
  fused["fuse_unk"] = true;
  EXPECT_THAT(tokenize(fused, "öéö"), ElementsAre(9, 10, 7));
}

TEST(Bpe, LastMergeOfPairWins) {
  EXPECT_THAT(tokenize({{"merges", {"a b", "b c", "a b"}}}, "abc"), ElementsAre(0, 4));
}

TEST(Bpe, SkipsAVersionLine) {
  EXPECT_THAT(tokenize({{"merges", {"#version: 0.2", "a b"}}}, "ab"), ElementsAre(3));
}

TEST(Bpe, MillionSymbolWordIsMerged) {
  // Quadratic merging would take 10^12 steps.
  EXPECT_EQ(tokenize(kNoPatch, std::string(1'000'000, 'a')), std::vector<int32_t>(250'000, 6));
}

TEST(MergeTable, FindsInsertedPairs) {
  MergeTable table(1000);
  for (int32_t i = 0; i < 1000; ++i) table.insert(i, 3 * i, {i, i + 1});
  for (int32_t i = 0; i < 1000; ++i) {
    ASSERT_NE(table.find(i, 3 * i), nullptr);
    EXPECT_EQ(table.find(i, 3 * i)->rank, i);
    EXPECT_EQ(table.find(i, 3 * i + 1), nullptr);
  }
}

TEST(WordCache, KeepsABoundedNumberOfShortWords) {
  WordCache cache;
  const int32_t id = 5;
  constexpr size_t kWords = 2 * WordCache::kShards * WordCache::kWordsPerShard;
  for (size_t i = 0; i < kWords; ++i) cache.insert(std::to_string(i), &id, 1);
  size_t found = 0;
  std::vector<int32_t> ids;
  for (size_t i = 0; i < kWords; ++i) found += cache.find(std::to_string(i), ids);
  EXPECT_GT(found, 0);
  EXPECT_LE(found, WordCache::kShards * WordCache::kWordsPerShard);
  EXPECT_EQ(ids.size(), found);
  const std::string longer(WordCache::kMaxWordBytes + 1, 'x');
  cache.insert(longer, &id, 1);
  EXPECT_FALSE(cache.find(longer, ids));
}

}  // namespace
}  // namespace valora::text
