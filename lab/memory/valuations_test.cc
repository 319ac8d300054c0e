// Each term of a node's value changes decisions.
#include "lab/memory/valuations.h"

#include <gtest/gtest.h>

#include <cmath>

#include "memory/testing/pool_world.h"

namespace valora::bench {
namespace {

using namespace memory;
using namespace std::chrono_literals;
using memory::testing::adapter;
using memory::testing::count_from;
using memory::testing::World;

const auto kFirst = adapter(1, 2), kSecond = adapter(2, 2), kThird = adapter(3, 2);

class ValuationTest : public ::testing::Test {
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

  static Swapper with(std::shared_ptr<Valuation> valuation) {
    return Swapper({.valuation = std::move(valuation)});
  }

  const Swapper benefit = with(std::make_shared<Benefit>()), lru = with(std::make_shared<Lru>());
};

TEST_F(ValuationTest, EvictsRarelyVisitedFirst) {
  World world({.blocks = 32, .prefix_caching = false});
  visit(world, kFirst, 9);
  visit(world, kSecond, 1);
  EXPECT_EQ(leaving(benefit, world, statistics(world)), std::vector{kSecond.digest});
  EXPECT_EQ(leaving(lru, world, statistics(world)), std::vector{kFirst.digest});
}

TEST_F(ValuationTest, EvictsOldestOfEquallyVisited) {
  World world({.blocks = 32, .prefix_caching = false});
  for (const AdapterNeed& need : {kSecond, kFirst, kThird}) {
    visit(world, need);
    world.wait(1s);
  }
  EXPECT_EQ(leaving(benefit, world, statistics(world), 6),
            (std::vector{kSecond.digest, kFirst.digest, kThird.digest}));
}

TEST_F(ValuationTest, RecencyFadesWithItsTime) {
  World world({.blocks = 32, .prefix_caching = false});
  visit(world, kFirst, 3);
  world.wait(2s);
  visit(world, kSecond, 1);
  const Swapper fast = with(std::make_shared<Benefit>(BenefitOptions{.recency_seconds = 0.5})),
                slow = with(std::make_shared<Benefit>(BenefitOptions{.recency_seconds = 60}));
  EXPECT_EQ(leaving(fast, world, statistics(world)), std::vector{kFirst.digest});
  EXPECT_EQ(leaving(slow, world, statistics(world)), std::vector{kSecond.digest});
}

TEST_F(ValuationTest, VisitsBeforeTheWindowDoNotCount) {
  World world({.blocks = 32, .prefix_caching = false});
  visit(world, kFirst, 9);
  world.wait(10min);
  visit(world, kSecond, 1);
  EXPECT_EQ(leaving(benefit, world, statistics(world)), std::vector{kFirst.digest});
}

// The cheaper of a KV block and an adapter's block to bring back is evicted first.
TEST_F(ValuationTest, EvictsCheapestToBringBackFirst) {
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

TEST_F(ValuationTest, RewardKeepsAdaptersWhileTooFew) {
  World world({.blocks = 64});
  for (int i = 0; i < 4; ++i) visit(world, adapter(i, 2));
  world.serve({}, count_from(0, 17));
  SwapStatistics s = statistics(world);
  s.batch = 64;  // a batch would use all four, but only one is in the pool
  for (int i = 0; i < 3; ++i) world.pool.forget(adapter(i, 2).digest);
  for (int i = 0; i < 3; ++i) visit(world, adapter(i, 65));  // too large: visited, but absent
  s.load = 1e-3;
  s.compute = 1.5e-3;
  const auto with_reward = std::make_shared<Benefit>(),
             without = std::make_shared<Benefit>(BenefitOptions{.adapter_reward = false});
  for (const auto& valuation : {with_reward, without}) valuation->update(world.pool.tree(), s);
  EXPECT_EQ(without->log_reward(), 0);
  EXPECT_EQ(leaving(with(without), world, s), std::vector{adapter(3, 2).digest});
  EXPECT_GT(with_reward->log_reward(), std::log(3.5));
  EXPECT_TRUE(leaving(with(with_reward), world, s).empty());
}

}  // namespace
}  // namespace valora::bench
