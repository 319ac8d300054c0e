// Sequences and history in the pool, without adapters or swap space.
#include "memory/pool.h"

#include <gtest/gtest.h>

#include <new>

#include "base/testing/allocation_faults.h"
#include "memory/testing/pool_world.h"

namespace valora::memory {
namespace {

using testing::check;
using testing::count_from;
using testing::keys_of;
using testing::User;
using testing::World;
using valora::testing::AllocationFault;

class PoolTest : public ::testing::Test {
 protected:
  // Occupies blocks of the pool on behalf of a sequence.
  Room hold(BlockTable& table, int blocks) { return world.pool.reserve(table, blocks * 16); }
  std::string check_tables(const std::vector<const BlockTable*>& tables) const {
    return world.pool.check(tables, {});
  }

  World world{{.blocks = 8}};
  Pool& pool = world.pool;
  const KvIdentity base;
};

TEST_F(PoolTest, CountsConversationTurns) {
  World roomy({.blocks = 40});
  const auto tokens = count_from(0, 100);
  const auto turn_of = [&](const User& user) {
    return roomy.pool.tree().node_of(user.table.blocks[0])->turn;
  };
  User first{base, {}, {}, {}};
  for (uint32_t turn = 1; turn <= 3; ++turn) {
    first.claim = {};
    ASSERT_TRUE(roomy.run(first, tokens));
    EXPECT_EQ(turn_of(first), turn);
    roomy.end(first);
  }
  ASSERT_TRUE(roomy.run(first, tokens));  // as after a preemption: the request has started before
  EXPECT_EQ(turn_of(first), 3u);
  User second{base, {}, {}, {}};
  ASSERT_TRUE(roomy.run(second, tokens));  // another answer to the same prompt
  EXPECT_EQ(turn_of(second), 3u);
  roomy.end(first);
  roomy.end(second);
  EXPECT_EQ(check(roomy.pool), "");
}

TEST_F(PoolTest, ReusesWholeBlocksAndLeavesOneTokenToCompute) {
  EXPECT_EQ(world.serve(base, count_from(0, 48)), 0);
  EXPECT_EQ(world.serve(base, count_from(0, 48)), 32);
  EXPECT_EQ(world.serve(base, count_from(0, 49)), 48);
  EXPECT_EQ(world.serve(base, count_from(0, 40)), 32);
  EXPECT_EQ(world.serve(base, count_from(0, 16)), 0);
  EXPECT_EQ(pool.stats().queried_tokens, 48u + 48 + 49 + 40 + 16);
  EXPECT_EQ(pool.stats().hit_tokens, 32u + 48 + 32);
  EXPECT_EQ(pool.usage(), 0);
  EXPECT_EQ(check(pool), "");
}

TEST_F(PoolTest, HitsNeedTheSameAdapterScaleAndPixels) {
  const auto tokens = count_from(0, 40);
  const auto adapter = [](const char* content, float scale) {
    return DigestBuilder().add(std::string_view(content)).add(scale).finish();
  };
  const std::vector<MediaSpan> cat{{4, 20, digest_of("cat")}}, dog{{4, 20, digest_of("dog")}};
  std::vector<KvIdentity> identities{{{}, {}, {}},
                                     {{}, {}, cat},
                                     {{}, {}, dog},
                                     {adapter("first content", 1), {}, cat},
                                     {adapter("first content", 2), {}, cat},
                                     {adapter("reloaded content", 1), {}, cat}};
  World wide({.blocks = 32});
  for (const KvIdentity& identity : identities) EXPECT_EQ(wide.serve(identity, tokens), 0);
  for (const KvIdentity& identity : identities) EXPECT_EQ(wide.serve(identity, tokens), 32);
}

TEST_F(PoolTest, SharedBlocksCountOnceAndOutliveTheirFirstOwner) {
  User first{base, {}, {}, {}}, second{base, {}, {}, {}};
  ASSERT_TRUE(world.run(first, count_from(0, 40)));
  ASSERT_TRUE(world.run(second, count_from(0, 40)));
  EXPECT_EQ(world.cached, 32);
  EXPECT_EQ(first.table.blocks[0], second.table.blocks[0]);
  EXPECT_NE(first.table.blocks[2], second.table.blocks[2]);
  EXPECT_EQ(pool.available_blocks(), 4);
  EXPECT_DOUBLE_EQ(pool.usage(), 0.5);
  world.end(first);
  EXPECT_EQ(pool.available_blocks(), 5);
  EXPECT_EQ(check(pool, {&second}), "");
  world.end(second);
  EXPECT_EQ(pool.available_blocks(), 8);
}

TEST_F(PoolTest, EvictionShortensPrefixesFromTheirEnd) {
  world.serve(base, count_from(0, 64));
  BlockTable hog;
  ASSERT_EQ(hold(hog, 6), Room::kReserved);
  User user{base, {}, {}, {}};
  EXPECT_FALSE(world.run(user, count_from(0, 65)));  // 3 more blocks are not available
  EXPECT_TRUE(user.table.blocks.empty());
  pool.release(hog);
  ASSERT_TRUE(world.run(user, count_from(0, 65)));
  EXPECT_EQ(world.cached, 32);
}

TEST_F(PoolTest, ReserveIsAllOrNothing) {
  BlockTable held, table;
  ASSERT_EQ(hold(held, 5), Room::kReserved);
  world.serve(base, count_from(0, 32));
  ASSERT_EQ(hold(table, 1), Room::kReserved);
  const BlockTable before = table;
  EXPECT_EQ(hold(table, 4), Room::kNone);
  EXPECT_EQ(table.blocks, before.blocks);
  EXPECT_EQ(world.serve(base, count_from(0, 32)), 16);  // the failed reservation evicted nothing
  EXPECT_EQ(hold(table, 3), Room::kReserved);           // evicts
  EXPECT_EQ(pool.available_blocks(), 0);
  EXPECT_EQ(pool.reserve(table, 40), Room::kReserved);  // the table is large enough already
  EXPECT_EQ(check_tables({&held, &table}), "");
}

TEST_F(PoolTest, BlocksToStartPredictsStart) {
  world.serve(base, count_from(0, 48));
  User sharer{base, {}, {}, {}};
  ASSERT_TRUE(world.run(sharer, count_from(0, 17)));
  for (int n : {1, 16, 17, 33, 48, 64, 96}) {
    const auto tokens = count_from(0, n);
    const int32_t before = pool.available_blocks();
    const int32_t predicted = pool.blocks_to_start(base, keys_of(base, tokens), n);
    BlockTable table;
    Claim claim;
    ASSERT_EQ(pool.start(claim, table, base, keys_of(base, tokens), n), Room::kReserved);
    EXPECT_EQ(before - pool.available_blocks(), predicted) << n;
    EXPECT_EQ(pool.resident_tokens(base, keys_of(base, tokens)), std::min(n / 16 * 16, 48)) << n;
    pool.release(table);
  }
}

TEST_F(PoolTest, ConcurrentEqualSequencesShareBlocks) {
  BlockTable first, second;
  const auto keys = keys_of(base, count_from(0, 48));
  ASSERT_EQ(hold(first, 3), Room::kReserved);
  ASSERT_EQ(hold(second, 3), Room::kReserved);
  pool.commit(first, base, keys, 32);
  EXPECT_NE(first.blocks[0], second.blocks[0]);
  pool.commit(second, base, keys, 48);
  EXPECT_EQ(first.blocks[0], second.blocks[0]);
  EXPECT_EQ(first.blocks[1], second.blocks[1]);
  EXPECT_EQ(check_tables({&first, &second}), "");
  EXPECT_EQ(pool.available_blocks(), 4);
  pool.release(first);
  EXPECT_EQ(check_tables({&second}), "");
  EXPECT_EQ(pool.available_blocks(), 5);
  pool.release(second);
  EXPECT_EQ(world.serve(base, count_from(0, 49)), 48);
}

// A pool that one sequence fills exactly is large enough even if another sequence stored its first
// blocks.
TEST_F(PoolTest, SharedPrefixDoesNotTakeExtraBlocks) {
  BlockTable first, second;
  const auto keys = keys_of(base, count_from(0, 128));
  ASSERT_EQ(hold(first, 2), Room::kReserved);
  ASSERT_EQ(hold(second, 3), Room::kReserved);
  pool.commit(first, base, keys, 32);
  pool.commit(second, base, keys, 48);
  pool.release(first);
  EXPECT_EQ(pool.reserve(second, 128), Room::kReserved);
  EXPECT_EQ(check_tables({&second}), "");
}

TEST_F(PoolTest, StoresBlocksAfterAnothersBlock) {
  BlockTable first, second, hog;
  const auto keys = keys_of(base, count_from(0, 48));
  ASSERT_EQ(hold(first, 3), Room::kReserved);
  ASSERT_EQ(hold(second, 2), Room::kReserved);
  pool.commit(first, base, keys, 48);
  pool.commit(second, base, keys, 32);
  EXPECT_EQ(first.blocks[1], second.blocks[1]);
  pool.release(first);
  ASSERT_EQ(hold(hog, 6), Room::kReserved);  // evicts blocks that the second sequence does not hold
  ASSERT_EQ(pool.reserve(second, 48), Room::kNone);
  pool.release(hog);
  ASSERT_EQ(pool.reserve(second, 48), Room::kReserved);
  pool.commit(second, base, keys, 48);
  EXPECT_EQ(check_tables({&second}), "");
  User third{base, {}, {}, {}};
  ASSERT_TRUE(world.run(third, count_from(0, 49)));
  EXPECT_EQ(world.cached, 48);
  EXPECT_EQ(third.table.blocks[2], second.blocks[2]);
}

// After a failed allocation in the middle of a commit, the next commit completes it.
TEST(PoolFaults, NextCommitCompletesFailedOne) {
  const auto keys = keys_of({}, count_from(0, 64));
  int struck = 0;
  for (int n = 0; n < 20; ++n) {
    World world({.blocks = 8});
    BlockTable table;
    ASSERT_EQ(world.pool.reserve(table, 64), Room::kReserved);
    try {
      const AllocationFault fault(n);
      world.pool.commit(table, {}, keys, 48);
    } catch (const std::bad_alloc&) {
      ++struck;
    }
    EXPECT_EQ(world.pool.check(std::vector<const BlockTable*>{&table}, {}), "");
    world.pool.commit(table, {}, keys, 64);
    EXPECT_EQ(world.pool.resident_tokens({}, keys), 64) << n;
    world.pool.release(table);
  }
  EXPECT_GT(struck, 3);
}

TEST_F(PoolTest, WithoutPrefixCachingNothingIsShared) {
  World plain({.blocks = 8, .prefix_caching = false});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(plain.serve(base, count_from(0, 40)), 0);
    EXPECT_EQ(check(plain.pool), "");
  }
  EXPECT_EQ(plain.pool.stats().queried_tokens, 0u);
}

TEST_F(PoolTest, WithoutHistoryKeepsNothing) {
  World slora({.blocks = 8, .history = false});
  EXPECT_EQ(slora.serve(base, count_from(0, 64)), 0);
  EXPECT_EQ(slora.serve(base, count_from(0, 64)), 0);
  EXPECT_EQ(slora.pool.stats().free, 8);
}

TEST_F(PoolTest, ShrunkPoolAllocatesOnlyBelowCapacity) {
  BlockTable held, more;
  world.serve(base, count_from(0, 48));
  ASSERT_EQ(hold(held, 4), Room::kReserved);
  pool.set_capacity(5);
  ASSERT_EQ(hold(more, 1), Room::kReserved);  // evicts history
  EXPECT_EQ(hold(more, 2), Room::kNone);
  pool.set_capacity(8);
  EXPECT_EQ(hold(more, 4), Room::kReserved);
  EXPECT_EQ(check_tables({&held, &more}), "");
}

TEST_F(PoolTest, CheckDetectsMissingTable) {
  BlockTable table;
  ASSERT_EQ(hold(table, 1), Room::kReserved);
  EXPECT_EQ(check_tables({&table}), "");
  EXPECT_NE(check_tables({}), "");
  EXPECT_NE(check_tables({&table, &table}), "");
}

}  // namespace
}  // namespace valora::memory
