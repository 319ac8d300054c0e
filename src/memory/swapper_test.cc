// Each term of a node's value changes decisions.
#include "memory/swapper.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "memory/testing/pool_world.h"

namespace valora::memory {
namespace {

using namespace std::chrono_literals;
using testing::adapter;
using testing::count_from;
using testing::identity_of;
using testing::World;

const auto kFirst = adapter(1, 2), kSecond = adapter(2, 2), kThird = adapter(3, 2);

class SwapperTest : public ::testing::Test {
 protected:
  // Requests that load or visit an adapter.
  static void visit(World& world, const AdapterNeed& need, int times = 1) {
    for (int i = 0; i < times; ++i)
      world.serve({DigestBuilder().add(need.digest).finish(), {need}, {}}, {1});
  }
  static SwapStatistics statistics(World& world) {
    SwapStatistics s;
    s.now = world.clock.now();
    s.slot = VisitWindow::slot_of(s.now, 5min);
    s.requests = 10;
    s.load = 1e-3;
    s.compute = 16e-3;
    return s;
  }
  // The keys of the adapters that leave() returns, in order.
  static std::vector<Digest> leaving(const Swapper& swapper, World& world, const SwapStatistics& s,
                                     int32_t blocks = 1) {
    std::vector<Digest> keys;
    for (const AnyNode& node : swapper.leave(world.pool.tree(), s, blocks))
      if (const auto* found = std::get_if<AdapterNode*>(&node)) keys.push_back((*found)->key);
    return keys;
  }

  const Swapper benefit{SwapperConfig{.policy = MemoryPolicy::kBenefit}},
      lru{SwapperConfig{.policy = MemoryPolicy::kLru}};
};

TEST_F(SwapperTest, EvictsRarelyVisitedFirst) {
  World world({.blocks = 32, .prefix_caching = false});
  visit(world, kFirst, 9);
  visit(world, kSecond, 1);
  EXPECT_EQ(leaving(benefit, world, statistics(world)), std::vector{kSecond.digest});
  EXPECT_EQ(leaving(lru, world, statistics(world)), std::vector{kFirst.digest});
}

TEST_F(SwapperTest, EvictsOldestOfEquallyVisited) {
  World world({.blocks = 32, .prefix_caching = false});
  for (const AdapterNeed& need : {kSecond, kFirst, kThird}) {
    visit(world, need);
    world.wait(1s);
  }
  EXPECT_EQ(leaving(benefit, world, statistics(world), 6),
            (std::vector{kSecond.digest, kFirst.digest, kThird.digest}));
}

TEST_F(SwapperTest, RecencyFadesWithItsTime) {
  World world({.blocks = 32, .prefix_caching = false});
  visit(world, kFirst, 3);
  world.wait(2s);
  visit(world, kSecond, 1);
  const Swapper fast(SwapperConfig{.policy = MemoryPolicy::kBenefit, .recency_seconds = 0.5}),
      slow(SwapperConfig{.policy = MemoryPolicy::kBenefit, .recency_seconds = 60});
  EXPECT_EQ(leaving(fast, world, statistics(world)), std::vector{kFirst.digest});
  EXPECT_EQ(leaving(slow, world, statistics(world)), std::vector{kSecond.digest});
}

TEST_F(SwapperTest, VisitsBeforeTheWindowDoNotCount) {
  World world({.blocks = 32, .prefix_caching = false});
  visit(world, kFirst, 9);
  world.wait(10min);
  visit(world, kSecond, 1);
  EXPECT_EQ(leaving(benefit, world, statistics(world)), std::vector{kFirst.digest});
}

// The cheaper of a KV block and an adapter's block to bring back is evicted first.
TEST_F(SwapperTest, EvictsCheapestToBringBackFirst) {
  World world({.blocks = 32});
  visit(world, kFirst);
  world.serve({}, count_from(0, 17));
  SwapStatistics s = statistics(world);
  s.compute = 1e-5;
  EXPECT_TRUE(leaving(benefit, world, s).empty());  // the KV block is evicted
  s.compute = 1;
  EXPECT_EQ(leaving(benefit, world, s), std::vector{kFirst.digest});
  s.swaps = true;  // with a swap space, the cost of KV is that of reading
  s.read = 1e-5;
  EXPECT_TRUE(leaving(benefit, world, s).empty());
}

TEST_F(SwapperTest, RewardKeepsAdaptersWhileTooFew) {
  World world({.blocks = 64});
  for (int i = 0; i < 4; ++i) visit(world, adapter(i, 2));
  world.serve({}, count_from(0, 17));
  SwapStatistics s = statistics(world);
  s.batch = 64;  // a batch would use all four, but only one is in the pool
  for (int i = 0; i < 3; ++i) world.pool.forget(adapter(i, 2).digest);
  for (int i = 0; i < 3; ++i) visit(world, adapter(i, 65));  // too large: visited, but absent
  s.load = 1e-3;
  s.compute = 1.5e-3;
  const Swapper plain(SwapperConfig{.policy = MemoryPolicy::kBenefit, .adapter_reward = false});
  EXPECT_EQ(plain.log_reward(world.pool.tree(), s), 0);
  EXPECT_EQ(leaving(plain, world, s), std::vector{adapter(3, 2).digest});
  s.log_reward = benefit.log_reward(world.pool.tree(), s);
  EXPECT_GT(s.log_reward, std::log(3.5));
  EXPECT_TRUE(leaving(benefit, world, s).empty());
}

TEST_F(SwapperTest, EvictsDependentsFirst) {
  World world({.blocks = 32, .swapper = {.policy = MemoryPolicy::kBenefit}});
  world.serve(identity_of(kFirst), count_from(0, 50));
  world.serve(identity_of(kFirst, 2), count_from(0, 20));
  world.serve({}, count_from(0, 20));
  std::set<const void*> gone;
  const auto nodes = benefit.leave(world.pool.tree(), statistics(world), 100);
  ASSERT_EQ(nodes.size(), 3 + 1 + 1 + 1u);
  for (const AnyNode& node : nodes) {
    if (const auto* kv = std::get_if<KvNode*>(&node)) {
      for (const KvNode* child : (*kv)->children) EXPECT_TRUE(gone.contains(child));
      gone.insert(*kv);
    } else {
      EXPECT_EQ(gone.size(), 4 + (gone.size() > 4 ? 1u : 0u));
    }
  }
}

TEST_F(SwapperTest, FillsToLowMarkAndEvictsToHighMark) {
  World world({.blocks = 20, .swap_blocks = 20});
  for (int i = 0; i < 5; ++i) {
    world.serve({}, count_from(1000 * i, 65));  // 4 blocks of history each
    world.wait(10ms);
  }
  world.settle();
  world.wait(200ms);
  world.settle();
  EXPECT_LE(world.pool.stats().free, 2);
  EXPECT_GE(world.pool.stats().free, 1);  // 95 %
  EXPECT_GE(world.pool.stats().swap_used, 1);
  // History moves to the swap space to make room, and returns when there is room again.
  BlockTable table;
  while (world.pool.reserve(table, 18 * 16) == Room::kSoon) world.settle();
  ASSERT_EQ(table.blocks.size(), 18u);
  EXPECT_GE(world.pool.stats().swap_used, 17);
  world.pool.release(table);
  for (int i = 0; i < 10; ++i) {
    world.wait(200ms);
    world.settle();
  }
  EXPECT_EQ(world.pool.stats().history_blocks, 14);  // 70 %
  EXPECT_GT(world.pool.stats().reads.moves, 10u);
  EXPECT_EQ(testing::check(world.pool), "");
}

}  // namespace
}  // namespace valora::memory
