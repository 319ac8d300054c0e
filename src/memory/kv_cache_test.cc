#include "memory/kv_cache.h"

#include <gtest/gtest.h>

#include <numeric>

namespace valora::memory {
namespace {

std::vector<int32_t> count_from(int32_t first, int n) {
  std::vector<int32_t> tokens(n);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

std::vector<Digest> keys_of(const KvIdentity& identity, const std::vector<int32_t>& tokens) {
  std::vector<Digest> keys;
  extend_block_keys(identity, tokens, keys);
  return keys;
}

// ---- keys ----

TEST(BlockKeys, OnlyFullBlocksHaveOne) {
  EXPECT_EQ(keys_of({}, count_from(0, 15)).size(), 0u);
  EXPECT_EQ(keys_of({}, count_from(0, 16)).size(), 1u);
  EXPECT_EQ(keys_of({}, count_from(0, 47)).size(), 2u);
}

TEST(BlockKeys, ExtendingEqualsStartingAnew) {
  const KvIdentity identity{digest_of("adapter"), {{20, 30, digest_of("image")}}};
  const auto tokens = count_from(0, 100);
  std::vector<Digest> keys;
  for (int known : {0, 15, 16, 40, 99, 100}) {
    extend_block_keys(identity, std::span(tokens).first(known), keys);
    EXPECT_EQ(keys, keys_of(identity, {tokens.begin(), tokens.begin() + known}));
  }
}

TEST(BlockKeys, AChangeReachesItsBlockAndAllLaterOnes) {
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
  const auto one = keys_of({scaled(1), {}}, tokens), two = keys_of({scaled(2), {}}, tokens),
             base = keys_of({}, tokens);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(one[i], two[i]);
    EXPECT_NE(one[i], base[i]);
  }
  EXPECT_EQ(one, keys_of({scaled(1), {}}, tokens));
}

TEST(BlockKeys, MediaCountsInTheBlocksItTouches) {
  const auto tokens = count_from(0, 80);
  const Digest cat = digest_of("cat"), dog = digest_of("dog");
  const auto with = [&](std::vector<MediaSpan> media) {
    return keys_of({{}, std::move(media)}, tokens);
  };
  const auto plain = with({}), cats = with({{18, 20, cat}}), dogs = with({{18, 20, dog}});
  EXPECT_EQ(plain[0], cats[0]);
  EXPECT_NE(plain[1], cats[1]);
  EXPECT_NE(cats[1], dogs[1]);
  EXPECT_NE(cats[4], dogs[4]);  // the keys of later blocks differ through the chain
  EXPECT_EQ(cats, with({{18, 20, cat}}));
  EXPECT_NE(cats[1], with({{19, 20, cat}})[1]);  // another offset
  EXPECT_NE(cats[1], with({{18, 21, cat}})[1]);  // another length
  // The order of two items in one block matters.
  EXPECT_NE(with({{1, 3, cat}, {5, 3, dog}})[0], with({{1, 3, dog}, {5, 3, cat}})[0]);
  // An item that ends or begins at a block's border does not affect the neighbouring block.
  EXPECT_EQ(with({{0, 16, cat}, {32, 8, dog}})[1], with({{0, 16, cat}})[1]);
}

// ---- cache ----

class KvCacheTest : public ::testing::Test {
 protected:
  // The life of a request: prefix, reservation, computation, commit. Returns the cached tokens.
  int run(KvCache& kv, BlockTable& table, const KvIdentity& identity,
          const std::vector<int32_t>& tokens) {
    const auto keys = keys_of(identity, tokens);
    const int n = static_cast<int>(tokens.size());
    const int cached = kv.reuse_prefix(table, identity.adapter, keys, n);
    EXPECT_TRUE(kv.reserve(table, n));
    kv.commit(table, identity.adapter, keys, n);
    return cached;
  }
  int run_and_release(const KvIdentity& identity, const std::vector<int32_t>& tokens) {
    BlockTable table;
    const int cached = run(cache, table, identity, tokens);
    cache.release(table);
    return cached;
  }
  std::string check(std::vector<const BlockTable*> tables = {}) { return cache.check(tables); }

  KvCache cache{8, true};
  const KvIdentity base;
};

TEST_F(KvCacheTest, ReusesWholeBlocksAndLeavesOneTokenToCompute) {
  EXPECT_EQ(run_and_release(base, count_from(0, 48)), 0);
  EXPECT_EQ(run_and_release(base, count_from(0, 48)), 32);
  EXPECT_EQ(run_and_release(base, count_from(0, 49)), 48);
  EXPECT_EQ(run_and_release(base, count_from(0, 40)), 32);
  EXPECT_EQ(run_and_release(base, count_from(0, 16)), 0);
  EXPECT_EQ(cache.stats().queried_tokens, 48u + 48 + 49 + 40 + 16);
  EXPECT_EQ(cache.stats().hit_tokens, 32u + 48 + 32);
  EXPECT_EQ(cache.usage(), 0);
  EXPECT_EQ(check(), "");
}

TEST_F(KvCacheTest, HitsNeedTheSameAdapterScaleAndPixels) {
  const auto tokens = count_from(0, 40);
  const auto adapter = [](const char* content, float scale) {
    return DigestBuilder().add(std::string_view(content)).add(scale).finish();
  };
  const std::vector<MediaSpan> cat{{4, 20, digest_of("cat")}}, dog{{4, 20, digest_of("dog")}};
  std::vector<KvIdentity> identities{{{}, {}},
                                     {{}, cat},
                                     {{}, dog},
                                     {adapter("first content", 1), cat},
                                     {adapter("first content", 2), cat},
                                     {adapter("reloaded content", 1), cat}};
  KvCache wide(32, true);
  for (const KvIdentity& identity : identities) {
    BlockTable table;
    EXPECT_EQ(run(wide, table, identity, tokens), 0);
    wide.release(table);
  }
  for (const KvIdentity& identity : identities) {
    BlockTable table;
    EXPECT_EQ(run(wide, table, identity, tokens), 32);
    wide.release(table);
  }
}

TEST_F(KvCacheTest, DropAdapterForgetsItsPrefixes) {
  const KvIdentity adapter{digest_of("adapter"), {}};
  run_and_release(adapter, count_from(0, 40));
  run_and_release(base, count_from(0, 40));
  cache.drop_adapter(adapter.adapter);
  EXPECT_EQ(run_and_release(adapter, count_from(0, 40)), 0);
  EXPECT_EQ(run_and_release(base, count_from(0, 40)), 32);
}

TEST_F(KvCacheTest, SharedBlocksCountOnceAndOutliveTheirFirstOwner) {
  BlockTable first, second;
  run(cache, first, base, count_from(0, 40));
  EXPECT_EQ(run(cache, second, base, count_from(0, 40)), 32);
  EXPECT_EQ(first.blocks[0], second.blocks[0]);
  EXPECT_NE(first.blocks[2], second.blocks[2]);
  EXPECT_EQ(cache.available_blocks(), 4);
  EXPECT_DOUBLE_EQ(cache.usage(), 0.5);
  cache.release(first);
  EXPECT_EQ(cache.available_blocks(), 5);
  EXPECT_EQ(check({&second}), "");
  cache.release(second);
  EXPECT_EQ(cache.available_blocks(), 8);
}

TEST_F(KvCacheTest, EvictionShortensPrefixesFromTheirEnd) {
  run_and_release(base, count_from(0, 64));
  BlockTable hog;
  ASSERT_TRUE(cache.reserve(hog, 6 * 16));
  BlockTable table;
  EXPECT_EQ(cache.reuse_prefix(table, base.adapter, keys_of(base, count_from(0, 64)), 65), 32);
}

TEST_F(KvCacheTest, ReserveIsAllOrNothing) {
  BlockTable held, table;
  ASSERT_TRUE(cache.reserve(held, 5 * 16));
  run_and_release(base, count_from(0, 32));
  ASSERT_TRUE(cache.reserve(table, 16));
  const BlockTable before = table;
  EXPECT_FALSE(cache.reserve(table, 4 * 16));
  EXPECT_EQ(table.blocks, before.blocks);
  EXPECT_EQ(run_and_release(base, count_from(0, 32)),
            16);                              // the failed reservation evicted nothing
  EXPECT_TRUE(cache.reserve(table, 3 * 16));  // evicts
  EXPECT_EQ(cache.available_blocks(), 0);
  EXPECT_TRUE(cache.reserve(table, 40));  // the table is large enough already
  EXPECT_EQ(check({&held, &table}), "");
}

TEST_F(KvCacheTest, BlocksToStartIsWhatStartingTakes) {
  run_and_release(base, count_from(0, 48));
  BlockTable sharer;
  run(cache, sharer, base, count_from(0, 17));
  for (int n : {1, 16, 17, 33, 48, 64, 96}) {
    const auto tokens = count_from(0, n);
    const int32_t before = cache.available_blocks();
    const int32_t predicted = cache.blocks_to_start(base.adapter, keys_of(base, tokens), n);
    BlockTable table;
    cache.reuse_prefix(table, base.adapter, keys_of(base, tokens), n);
    ASSERT_TRUE(cache.reserve(table, n));
    EXPECT_EQ(before - cache.available_blocks(), predicted) << n;
    cache.release(table);
  }
}

TEST_F(KvCacheTest, EqualComputationsAtOnceKeepPrivateBlocks) {
  BlockTable first, second;
  const auto tokens = count_from(0, 48);
  const auto keys = keys_of(base, tokens);
  ASSERT_TRUE(cache.reserve(first, 48));
  ASSERT_TRUE(cache.reserve(second, 48));
  cache.commit(first, base.adapter, keys, 32);
  cache.commit(second, base.adapter, keys, 48);
  EXPECT_NE(first.blocks[0], second.blocks[0]);
  EXPECT_EQ(check({&first, &second}), "");
  // The continuation of the second sequence is stored below the blocks of the first, and keeps
  // these from being evicted.
  cache.release(first);
  EXPECT_EQ(check({&second}), "");
  EXPECT_EQ(cache.available_blocks(), 3);
  cache.release(second);
  EXPECT_EQ(run_and_release(base, count_from(0, 49)), 48);
}

TEST_F(KvCacheTest, PrivateBlocksReplaceEvictedOnesOfTheSameKey) {
  BlockTable first, second, hog;
  const auto tokens = count_from(0, 48);
  const auto keys = keys_of(base, tokens);
  ASSERT_TRUE(cache.reserve(first, 32));
  cache.commit(first, base.adapter, keys, 32);
  ASSERT_TRUE(cache.reserve(second, 48));
  cache.commit(second, base.adapter, keys, 32);
  cache.release(first);
  ASSERT_TRUE(cache.reserve(hog, 5 * 16));  // evicts the first sequence's blocks
  cache.commit(second, base.adapter, keys, 48);
  EXPECT_EQ(check({&second, &hog}), "");
  BlockTable third;
  EXPECT_EQ(cache.reuse_prefix(third, base.adapter, keys, 49), 48);
  EXPECT_EQ(third.blocks, second.blocks);
}

TEST_F(KvCacheTest, WithoutPrefixCachingNothingIsShared) {
  KvCache plain(8, false);
  for (int i = 0; i < 2; ++i) {
    BlockTable table;
    EXPECT_EQ(run(plain, table, base, count_from(0, 40)), 0);
    plain.release(table);
    EXPECT_EQ(plain.check({}), "");
  }
  EXPECT_EQ(plain.stats().queried_tokens, 0u);
}

TEST_F(KvCacheTest, CheckSeesALostTable) {
  BlockTable table;
  ASSERT_TRUE(cache.reserve(table, 16));
  EXPECT_EQ(check({&table}), "");
  EXPECT_NE(check(), "");
  EXPECT_NE(check({&table, &table}), "");
}

}  // namespace
}  // namespace valora::memory
