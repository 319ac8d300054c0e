#include <gtest/gtest.h>

#include <algorithm>

#include "memory/testing/pool_world.h"

namespace valora::memory {
namespace {

using testing::count_from;
using testing::keys_of;

TEST(BlockKeys, OnlyFullBlocksHaveKeys) {
  EXPECT_EQ(keys_of({}, count_from(0, 15)).size(), 0u);
  EXPECT_EQ(keys_of({}, count_from(0, 16)).size(), 1u);
  EXPECT_EQ(keys_of({}, count_from(0, 47)).size(), 2u);
}

TEST(BlockKeys, ExtendingEqualsRecomputing) {
  const KvIdentity identity{digest_of("adapter"), {}, {{20, 30, digest_of("image")}}};
  const auto tokens = count_from(0, 100);
  std::vector<Digest> keys;
  for (int known : {0, 15, 16, 40, 99, 100}) {
    extend_block_keys(identity, std::span(tokens).first(known), keys);
    EXPECT_EQ(keys, keys_of(identity, {tokens.begin(), tokens.begin() + known}));
  }
}

TEST(BlockKeys, ChangeAffectsItsBlockAndAllLater) {
  auto tokens = count_from(0, 64);
  const auto before = keys_of({}, tokens);
  tokens[20] = -1;
  const auto after = keys_of({}, tokens);
  EXPECT_EQ(before[0], after[0]);
  for (int i = 1; i < 4; ++i) EXPECT_NE(before[i], after[i]);
}

TEST(BlockKeys, AdapterAndScaleAreInEveryKey) {
  const auto tokens = count_from(0, 32);
  const auto scaled = [](float scale) {
    return DigestBuilder().add(digest_of("a")).add(scale).finish();
  };
  const auto one = keys_of({scaled(1), {}, {}}, tokens), two = keys_of({scaled(2), {}, {}}, tokens),
             base = keys_of({}, tokens);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(one[i], two[i]);
    EXPECT_NE(one[i], base[i]);
  }
  EXPECT_EQ(one, keys_of({scaled(1), {}, {}}, tokens));
}

TEST(BlockKeys, MediaAffectsOverlappedBlocks) {
  const auto tokens = count_from(0, 80);
  const Digest cat = digest_of("cat"), dog = digest_of("dog");
  const auto with = [&](std::vector<MediaSpan> media) {
    return keys_of({{}, {}, std::move(media)}, tokens);
  };
  const auto plain = with({}), cats = with({{18, 20, cat}}), dogs = with({{18, 20, dog}});
  EXPECT_EQ(plain[0], cats[0]);
  EXPECT_NE(plain[1], cats[1]);
  EXPECT_NE(cats[1], dogs[1]);
  EXPECT_NE(cats[4], dogs[4]);  // later keys differ because they are chained
  EXPECT_EQ(cats, with({{18, 20, cat}}));
  EXPECT_NE(cats[1], with({{19, 20, cat}})[1]);  // another offset
  EXPECT_NE(cats[1], with({{18, 21, cat}})[1]);  // another length
  // The order of two items within a block matters.
  EXPECT_NE(with({{1, 3, cat}, {5, 3, dog}})[0], with({{1, 3, dog}, {5, 3, cat}})[0]);
  // An item that ends or begins at a block boundary does not affect the adjacent block.
  EXPECT_EQ(with({{0, 16, cat}, {32, 8, dog}})[1], with({{0, 16, cat}})[1]);
}

// Keys of `tokens` tokens: `prompt` tokens of prompt, the rest generated.
std::vector<Digest> with_rope(int prompt, int tokens, bool each, int64_t limit = 40) {
  return keys_of({{}, {}, {}, {limit, each, prompt, prompt, 0}}, count_from(0, tokens));
}

TEST(BlockKeys, WithinRopeLimitKeysArePlain) {
  const auto plain = keys_of({}, count_from(0, 96));
  for (const bool each : {false, true}) {
    EXPECT_EQ(with_rope(40, 32, each), keys_of({}, count_from(0, 32)));
    const auto crossing = with_rope(20, 96, each);  // generated tokens from 40 on exceed it
    EXPECT_EQ(crossing[1], plain[1]);
    for (int i = 2; i < 6; ++i) EXPECT_NE(crossing[i], plain[i]) << i;
    EXPECT_EQ(crossing, with_rope(37, 96, each)) << "the same frequencies for each token";
  }
}

TEST(BlockKeys, BeyondRopeLimitEqualFrequenciesShare) {
  const auto shared = [](const std::vector<Digest>& a, const std::vector<Digest>& b) {
    return std::ranges::mismatch(a, b).in1 - a.begin();
  };
  // One set of frequencies beyond the limit: all long prompts and their answers share blocks, but
  // not with short prompts.
  EXPECT_EQ(shared(with_rope(41, 96, false), with_rope(96, 96, false)), 6);
  EXPECT_EQ(shared(with_rope(40, 96, false), with_rope(41, 96, false)), 0);
  // One set per length: only prompts of equal length share, answers included.
  EXPECT_EQ(shared(with_rope(64, 96, true), with_rope(64, 80, true)), 5);
  EXPECT_EQ(shared(with_rope(64, 96, true), with_rope(65, 96, true)), 0);
  EXPECT_EQ(shared(with_rope(64, 96, true), with_rope(40, 96, true)), 0);
  // One set per doubling of the limit: prompts within one doubling share, and answers keep their
  // prompt's frequencies.
  const auto doubling = [](int prompt, int tokens) {
    return keys_of({{}, {}, {}, {40, true, prompt, prompt, 0, true}}, count_from(0, tokens));
  };
  EXPECT_EQ(doubling(40, 96), keys_of({}, count_from(0, 96)));
  EXPECT_EQ(shared(doubling(40, 96), doubling(41, 96)), 0);
  EXPECT_EQ(shared(doubling(41, 96), doubling(80, 96)), 6);
  EXPECT_EQ(shared(doubling(80, 96), doubling(81, 96)), 0);
  EXPECT_EQ(shared(doubling(81, 96), doubling(160, 96)), 6);
}

// With M-RoPE, positions differ from indices: an image advances positions by fewer than its tokens,
// a video may advance them by more.
TEST(BlockKeys, RopeVariantFollowsPositions) {
  const RopeLengths picture{40, true, 60, 30, -30}, video{40, false, 10, 50, 40};
  EXPECT_EQ(picture.variant(59), 0);
  EXPECT_EQ(picture.of(60), 31);
  EXPECT_EQ(picture.variant(70), 41);
  EXPECT_EQ(video.variant(0), 1);
  EXPECT_EQ(video.of(10), 51);
}

TEST(BlockKeys, BlocksBeforeLateAdapterHavePlainKeys) {
  const auto tokens = count_from(0, 80);
  const auto late = [&](int from, const char* adapter = "late") {
    KvIdentity identity;
    identity.late = digest_of(adapter);
    identity.late_from = from;
    return keys_of(identity, tokens);
  };
  const auto plain = keys_of({}, tokens), first = late(40);
  EXPECT_EQ(first[0], plain[0]);
  EXPECT_EQ(first[1], plain[1]);
  for (int i = 2; i < 5; ++i) EXPECT_NE(first[i], plain[i]) << i;
  EXPECT_NE(first[2], late(40, "other")[2]);
  EXPECT_NE(first[2], late(41)[2]) << "acts from another token of the block on";
  EXPECT_EQ(late(48)[2], plain[2]);
  EXPECT_NE(late(48)[3], plain[3]);
  EXPECT_NE(late(0)[0], keys_of({digest_of("late"), {}, {}}, tokens)[0]);
}

}  // namespace
}  // namespace valora::memory
