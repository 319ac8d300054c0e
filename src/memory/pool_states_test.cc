// States of sequences: their blocks, nodes' checkpoints, and prefixes that end at a checkpoint.
#include <gtest/gtest.h>

#include "memory/testing/pool_world.h"

namespace valora::memory {
namespace {

using testing::check;
using testing::count_from;
using testing::User;
using testing::World;

constexpr int kState = 3;  // blocks

PoolConfig states_in(int32_t blocks) { return {.blocks = blocks, .state_blocks = kState}; }

// Runs all tokens in one step that keeps the state after the first `kept` tokens.
bool run_keeping(World& world, User& user, const std::vector<int32_t>& tokens, int kept) {
  const int n = static_cast<int>(tokens.size());
  user.keys = testing::keys_of(user.identity, tokens);
  if (world.pool.claim(user.claim, user.identity, user.keys, n) != Readiness::kReady) return false;
  if (world.pool.start(user.claim, user.table, user.identity, user.keys, n) != Room::kReserved)
    return false;
  world.cached = user.table.committed * kBlockTokens;
  const int rows[] = {kept - world.cached};
  const int count = rows[0] > 0 ? world.pool.reserve_checkpoints(user.table, 1) : 0;
  world.pool.commit(user.table, user.identity, user.keys, n);
  world.pool.record_state(user.table, world.cached, {rows, static_cast<size_t>(count)});
  return true;
}

TEST(PoolStates, PrefixEndsAtCheckpoint) {
  World world(states_in(40));
  User first, second, third;
  ASSERT_TRUE(run_keeping(world, first, count_from(0, 70), 32));
  EXPECT_EQ(first.table.state.size(), 3u);
  EXPECT_EQ(world.pool.tree().counts().checkpoint_blocks, kState);
  world.end(first);
  EXPECT_EQ(world.pool.resident_tokens({}, testing::keys_of({}, count_from(0, 70))), 32);
  EXPECT_EQ(world.pool.blocks_to_start({}, testing::keys_of({}, count_from(0, 70)), 70),
            5 + kState);
  ASSERT_TRUE(run_keeping(world, second, count_from(0, 70), 64));
  EXPECT_EQ(world.cached, 32);
  EXPECT_EQ(second.table.branch, 4);  // its stored KV continues to token 64
  EXPECT_EQ(check(world.pool, {&second}), "");
  ASSERT_TRUE(run_keeping(world, third, count_from(0, 90), 0));
  EXPECT_EQ(world.cached, 64);
  world.end(second);
  world.end(third);
  EXPECT_EQ(check(world.pool), "");
  EXPECT_EQ(world.pool.usage(), 0);
}

TEST(PoolStates, CheckpointInUseStays) {
  World world(states_in(40));
  User first, reader;
  ASSERT_TRUE(run_keeping(world, first, count_from(0, 40), 32));
  world.end(first);
  const auto tokens = count_from(0, 40);
  reader.keys = testing::keys_of({}, tokens);
  ASSERT_EQ(world.pool.claim(reader.claim, {}, reader.keys, 40), Readiness::kReady);
  ASSERT_EQ(world.pool.start(reader.claim, reader.table, {}, reader.keys, 40), Room::kReserved);
  EXPECT_EQ(reader.table.start.size(), 3u);
  EXPECT_EQ(world.pool.tree().counts().idle_checkpoint_blocks, 0);
  for (const BlockId block : reader.table.start)
    for (const BlockId own : reader.table.state) EXPECT_NE(block, own);
  EXPECT_EQ(check(world.pool, {&reader}), "");
  // Another sequence asks for one block more than is left.
  User other;
  const int32_t room = world.pool.available_blocks();
  EXPECT_EQ(world.pool.reserve(other.table, (room - kState + 1) * kBlockTokens), Room::kNone);
  ASSERT_EQ(world.pool.reserve(other.table, (room - kState) * kBlockTokens), Room::kReserved);
  EXPECT_EQ(world.pool.tree().counts().checkpoint_blocks, kState);
  EXPECT_EQ(check(world.pool, {&reader, &other}), "");
  world.pool.record_state(reader.table, 32, {});
  EXPECT_TRUE(reader.table.start.empty());
  EXPECT_EQ(world.pool.tree().counts().idle_checkpoint_blocks, kState);
  world.end(reader);
  world.end(other);
  EXPECT_EQ(check(world.pool), "");
}

// The checkpoint of its own prefix must not keep the longest possible sequence from starting or
// growing.
TEST(PoolStates, LongestSequenceFits) {
  World world(states_in(12));
  EXPECT_EQ(world.pool.max_tokens(), (12 - kState) * kBlockTokens);
  User first, longest;
  ASSERT_TRUE(run_keeping(world, first, count_from(0, 40), 32));
  world.end(first);
  const auto most = static_cast<int>(world.pool.max_tokens());
  const auto keys = testing::keys_of({}, count_from(0, most));
  EXPECT_EQ(world.pool.blocks_to_start({}, keys, most), 12);
  ASSERT_TRUE(run_keeping(world, longest, count_from(0, most), 128));
  EXPECT_EQ(world.cached, 0);
  EXPECT_EQ(check(world.pool, {&longest}), "");
  world.end(longest);
  // A growing sequence drops checkpoints of nodes that it holds itself.
  ASSERT_TRUE(run_keeping(world, first, count_from(500, 40), 32));
  EXPECT_EQ(world.pool.tree().counts().checkpoint_blocks, kState);
  ASSERT_EQ(world.pool.reserve(first.table, most), Room::kReserved);
  EXPECT_EQ(world.pool.tree().counts().checkpoint_blocks, 0);
  EXPECT_EQ(check(world.pool, {&first}), "");
  world.end(first);
}

TEST(PoolStates, CheckpointsLeaveWithTheirNodes) {
  World world(states_in(20));
  for (int i = 0; i < 6; ++i) {
    User user;
    ASSERT_TRUE(run_keeping(world, user, count_from(100 * i, 40), 32));
    EXPECT_EQ(check(world.pool, {&user}), "");
    world.end(user);
    world.wait(std::chrono::milliseconds(200));
  }
  EXPECT_GE(world.pool.tree().counts().checkpoint_blocks, kState);
  EXPECT_LT(world.pool.tree().counts().checkpoint_blocks, 6 * kState);
  EXPECT_EQ(check(world.pool), "");
  // The last checkpoint is still found.
  EXPECT_EQ(world.pool.resident_tokens({}, testing::keys_of({}, count_from(500, 40))), 32);
}

// Checkpoint blocks reserved for a step that did not run are returned.
TEST(PoolStates, UnusedCheckpointBlocksAreReturned) {
  World world(states_in(40));
  User user;
  user.keys = testing::keys_of({}, count_from(0, 40));
  ASSERT_EQ(world.pool.claim(user.claim, {}, user.keys, 40), Readiness::kReady);
  ASSERT_EQ(world.pool.start(user.claim, user.table, {}, user.keys, 40), Room::kReserved);
  ASSERT_EQ(world.pool.reserve_checkpoints(user.table, 2), 2);
  ASSERT_EQ(world.pool.reserve_checkpoints(user.table, 1), 1);
  EXPECT_TRUE(user.table.kept[1].empty());
  EXPECT_EQ(check(world.pool, {&user}), "");
  world.pool.record_state(user.table, 0, {});
  EXPECT_EQ(world.pool.tree().counts().checkpoint_blocks, 0);
  EXPECT_EQ(check(world.pool, {&user}), "");
  world.end(user);
  EXPECT_EQ(world.pool.stats().running_blocks, 0);
}

}  // namespace
}  // namespace valora::memory
