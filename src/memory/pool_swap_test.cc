// KV in the swap space: reading back, failures, evictions.
#include <gtest/gtest.h>

#include "memory/testing/pool_world.h"

namespace valora::memory {
namespace {

using namespace std::chrono_literals;
using testing::adapter;
using testing::check;
using testing::count_from;
using testing::identity_of;
using testing::User;
using testing::World;

const auto kAdapter = adapter(1, 3);

// Briefly takes all blocks, which evicts all history.
void press(World& world) {
  BlockTable table;
  for (int i = 0; i < 20; ++i) {
    if (world.pool.reserve(table, world.pool.total_blocks() * kBlockTokens) == Room::kReserved)
      break;
    world.settle();
  }
  ASSERT_FALSE(table.blocks.empty());
  world.pool.release(table);
}

// Moves of this kind fail while `broken` is true; it must outlive the returned function.
SimulatedMover::Fate failing(MoveKind kind, const bool& broken) {
  return [kind, &broken](const Move& move) {
    const bool fails = broken && move.kind == kind;
    return SimulatedMover::Outcome{fails ? Status(internal("short copy")) : Status(), 1};
  };
}

TEST(PoolSwap, ReturningConversationFindsPrefix) {
  World world({.blocks = 12, .swap_blocks = 20});
  const KvIdentity identity = identity_of(kAdapter);
  world.serve(identity, count_from(0, 100));
  press(world);
  EXPECT_EQ(world.pool.stats().swap_used, 6);
  EXPECT_FALSE(world.pool.resident(kAdapter.digest));
  world.wait(1h);
  EXPECT_EQ(world.serve(identity, count_from(0, 101)), 96);
  EXPECT_EQ(world.pool.stats().swapped_tokens, 96u);
  EXPECT_EQ(check(world.pool), "");
}

TEST(PoolSwap, SavedBlockLeavesWithoutCopy) {
  World world({.blocks = 12, .swap_blocks = 20});
  world.serve({}, count_from(0, 100));
  press(world);
  world.serve({}, count_from(0, 100));
  const uint64_t writes = world.pool.stats().writes.moves;
  press(world);
  EXPECT_EQ(world.pool.stats().writes.moves, writes);
  EXPECT_EQ(world.serve({}, count_from(0, 100)), 96);
}

TEST(PoolSwap, DoesNotSaveKvCheaperToRecompute) {
  World world({.blocks = 12, .swap_blocks = 20});
  for (int i = 0; i < 300; ++i) world.pool.record_prefill(i % 2 * 1000, 1e-9);
  world.serve({}, count_from(0, 100));
  press(world);
  EXPECT_EQ(world.pool.stats().swap_used, 0);
  EXPECT_EQ(world.pool.stats().kv_dropped, 6u);
}

// A waiting request whose KV has just been read from the swap space.
User waiting_for_kv(World& world, const std::vector<int32_t>& tokens) {
  User user{{}, {}, {}, {}};
  user.keys = testing::keys_of(user.identity, tokens);
  EXPECT_EQ(world.pool.claim(user.claim, user.identity, user.keys, tokens.size()),
            Readiness::kLoadingKv);
  world.settle();
  return user;
}

// Until then, the sequence keeps its own blocks.
TEST(PoolSwap, SequenceAdoptsBlocksOnceRead) {
  World world({.blocks = 12, .swap_blocks = 20});
  const auto tokens = count_from(0, 65);
  world.serve({}, count_from(0, 49));
  press(world);
  const auto keys = testing::keys_of({}, tokens);
  BlockTable own;
  ASSERT_EQ(world.pool.reserve(own, 48), Room::kReserved);
  User user{{}, {}, {}, {}};
  ASSERT_EQ(world.pool.claim(user.claim, {}, keys, 65), Readiness::kLoadingKv);
  world.pool.commit(own, {}, keys, 48);
  const std::vector<BlockId> before = own.blocks;
  world.settle();
  ASSERT_EQ(world.pool.reserve(own, 64), Room::kReserved);
  world.pool.commit(own, {}, keys, 64);
  for (int i = 0; i < 3; ++i) EXPECT_NE(own.blocks[i], before[i]) << i;
  EXPECT_EQ(world.pool.check(std::vector<const BlockTable*>{&own},
                             std::vector<const Claim*>{&user.claim}),
            "");
  ASSERT_TRUE(world.run(user, tokens));
  EXPECT_EQ(world.cached, 64);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(user.table.blocks[i], own.blocks[i]) << i;
  world.pool.release(own);
  world.end(user);
}

TEST(PoolSwap, AwaitedKvIsEvictedLast) {
  World world({.blocks = 12, .swap_blocks = 20});
  world.serve({}, count_from(0, 97));
  press(world);
  for (int i = 0; i < 20; ++i) world.serve({}, count_from(500, 65));  // makes these blocks popular
  User user = waiting_for_kv(world, count_from(0, 97));
  BlockTable other;
  ASSERT_EQ(world.pool.reserve(other, 4 * 16), Room::kSoon);
  world.settle();
  ASSERT_EQ(world.pool.reserve(other, 4 * 16), Room::kReserved);
  EXPECT_EQ(world.pool.resident_tokens({}, user.keys), 96);
  EXPECT_LT(world.pool.resident_tokens({}, testing::keys_of({}, count_from(500, 65))), 64);
  world.pool.release(other);
  world.end(user);
}

TEST(PoolSwap, RereadsKvEvictedBeforeStart) {
  World world({.blocks = 12, .swap_blocks = 20});
  world.serve({}, count_from(0, 97));
  press(world);
  User user = waiting_for_kv(world, count_from(0, 97));
  press(world);  // evicts everything idle, as a running request would
  EXPECT_FALSE(world.run(user, count_from(0, 97)));
  world.settle();
  ASSERT_TRUE(world.run(user, count_from(0, 97)));
  EXPECT_EQ(world.cached, 96);
  EXPECT_EQ(check(world.pool, {&user}), "");
  world.end(user);
}

TEST(PoolSwap, ReadingRestKeepsResidentPrefix) {
  World world({.blocks = 12, .swap_blocks = 20});
  world.serve({}, count_from(0, 97));
  press(world);
  world.serve({}, count_from(0, 49));  // three of its six blocks are read back
  BlockTable other;
  ASSERT_EQ(world.pool.reserve(other, 8 * 16), Room::kReserved);
  User user{{}, {}, {}, {}};
  user.keys = testing::keys_of(user.identity, count_from(0, 97));
  EXPECT_EQ(world.pool.claim(user.claim, user.identity, user.keys, 97), Readiness::kFull);
  EXPECT_EQ(world.pool.resident_tokens({}, user.keys), 48);
  EXPECT_FALSE(world.pool.moving());
  EXPECT_EQ(world.pool.check(std::vector<const BlockTable*>{&other}, {}), "");
  world.pool.release(other);
  world.end(user);
}

TEST(PoolSwap, RetriesFailedWrite) {
  bool broken = false;
  World world({.blocks = 12, .swap_blocks = 20}, failing(MoveKind::kReadKv, broken));
  world.serve({}, count_from(0, 97));
  press(world);
  broken = true;
  EXPECT_EQ(world.serve({}, count_from(0, 97)), 0);
  broken = false;
  const uint64_t writes = world.pool.stats().writes.moves;
  world.wait(2s);
  press(world);
  EXPECT_GT(world.pool.stats().writes.moves, writes);
  EXPECT_EQ(world.serve({}, count_from(0, 97)), 96);
  EXPECT_EQ(check(world.pool), "");
}

TEST(PoolSwap, ReadyRequestHoldsPrefix) {
  World world({.blocks = 12, .swap_blocks = 20});
  world.serve({}, count_from(0, 97));
  User user{{}, {}, {}, {}};
  user.keys = testing::keys_of(user.identity, count_from(0, 97));
  EXPECT_EQ(world.pool.claim(user.claim, user.identity, user.keys, 97), Readiness::kReady);
  EXPECT_EQ(check(world.pool, {&user}), "");
  BlockTable other;
  EXPECT_EQ(world.pool.reserve(other, 7 * 16), Room::kNone);
  EXPECT_EQ(world.pool.available_blocks(), 6);
  world.end(user);
  EXPECT_EQ(world.pool.available_blocks(), 12);
}

TEST(PoolSwap, KvBeingReadIsNotCountedAsUsed) {
  World world({.blocks = 12, .swap_blocks = 20});
  world.serve({}, count_from(0, 100));
  press(world);
  User user;
  ASSERT_FALSE(world.run(user, count_from(0, 100)));
  ASSERT_TRUE(world.pool.moving());
  EXPECT_EQ(world.pool.stats().running_blocks, 0);
  EXPECT_EQ(world.pool.stats().history_blocks, 6);
  EXPECT_EQ(check(world.pool, {&user}), "");
  world.settle();
  ASSERT_TRUE(world.run(user, count_from(0, 100)));
  EXPECT_EQ(world.pool.stats().running_blocks, 7);
  EXPECT_EQ(check(world.pool, {&user}), "");
  world.end(user);
  EXPECT_EQ(world.pool.stats().running_blocks, 0);
}

TEST(PoolSwap, FailedReadIsRecomputed) {
  bool broken = false;
  World world({.blocks = 12, .swap_blocks = 20}, failing(MoveKind::kReadKv, broken));
  world.serve({}, count_from(0, 100));
  press(world);
  broken = true;
  EXPECT_EQ(world.serve({}, count_from(0, 100)), 0);
  EXPECT_EQ(world.pool.stats().reads.failed, 6u);
  EXPECT_EQ(check(world.pool), "");
  EXPECT_EQ(world.serve({}, count_from(0, 100)), 96);  // recomputed, in the pool
}

// Reading the first block of the chain fails; the blocks below it arrive.
TEST(PoolSwap, BlocksBelowFailedReadAreRemoved) {
  int reads = 0;
  World world({.blocks = 12, .swap_blocks = 20}, [&](const Move& move) {
    const bool fails = move.kind == MoveKind::kReadKv && ++reads == 2;
    return SimulatedMover::Outcome{fails ? Status(internal("short read")) : Status(), 1};
  });
  world.serve({}, count_from(0, 100));
  press(world);
  EXPECT_EQ(world.serve({}, count_from(0, 100)), 16);
  EXPECT_EQ(check(world.pool), "");
}

TEST(PoolSwap, FailedWriteKeepsBlock) {
  bool broken = true;
  World world({.blocks = 8, .swap_blocks = 20}, failing(MoveKind::kWriteKv, broken));
  world.serve({}, count_from(0, 100));
  BlockTable table;
  EXPECT_EQ(world.pool.reserve(table, 4 * 16), Room::kSoon);
  world.settle();
  EXPECT_EQ(world.pool.stats().history_blocks, 6);
  EXPECT_EQ(world.pool.stats().swap_used, 0);
  EXPECT_GT(world.pool.stats().writes.failed, 0u);
  // An immediate retry would fail again, so the blocks are dropped now.
  EXPECT_EQ(world.pool.reserve(table, 4 * 16), Room::kReserved);
  EXPECT_EQ(world.pool.stats().kv_dropped, 2u);
  world.pool.release(table);
  EXPECT_EQ(check(world.pool), "");
}

TEST(PoolSwap, VisitKeepsLeavingBlock) {
  World world({.blocks = 8, .swap_blocks = 20});
  world.serve({}, count_from(0, 80));
  BlockTable table;
  EXPECT_EQ(world.pool.reserve(table, 4 * 16), Room::kSoon);
  User user{{}, {}, {}, {}};
  ASSERT_TRUE(world.run(user, count_from(0, 80)));
  EXPECT_EQ(world.cached, 64);
  world.settle();
  EXPECT_EQ(check(world.pool, {&user}), "");
  EXPECT_EQ(world.pool.available_blocks(), 3);
  world.end(user);
}

TEST(PoolSwap, FullSwapEvictsLeastValuable) {
  World world({.blocks = 12, .swap_blocks = 6});
  world.serve({}, count_from(0, 97));
  press(world);
  world.wait(1s);
  world.serve({}, count_from(5000, 97));
  press(world);
  EXPECT_EQ(world.pool.stats().swap_used, 6);
  EXPECT_EQ(world.serve({}, count_from(5000, 97)), 96);
  EXPECT_EQ(world.serve({}, count_from(0, 97)), 0);
  EXPECT_EQ(check(world.pool), "");
}

TEST(PoolSwap, ForgottenAdapterRemovesSwappedKv) {
  World world({.blocks = 12, .swap_blocks = 20});
  world.serve(identity_of(kAdapter), count_from(0, 100));
  press(world);
  world.pool.forget(kAdapter.digest);
  EXPECT_EQ(world.pool.stats().swap_used, 0);
  EXPECT_EQ(world.pool.tree().kv_nodes(), 0u);
  EXPECT_EQ(check(world.pool), "");
}

}  // namespace
}  // namespace valora::memory
