// What leaves the pool, in which order, and how far.
#include "memory/swapper.h"

#include <gtest/gtest.h>

#include <set>

#include "memory/testing/pool_world.h"

namespace valora::memory {
namespace {

using namespace std::chrono_literals;
using testing::adapter;
using testing::count_from;
using testing::identity_of;
using testing::World;

// Values nothing, so that the least recently used node leaves first.
class NoValue final : public Valuation {
 public:
  double log_value(const AdapterNode&, const SwapStatistics&) const override { return 0; }
  double log_value(const KvNode&, const SwapStatistics&) const override { return 0; }
};

TEST(Swapper, EvictsDependentsFirst) {
  World world({.blocks = 32, .dependencies = true});
  world.serve(identity_of(adapter(1, 2)), count_from(0, 50));
  world.serve(identity_of(adapter(1, 2), 2), count_from(0, 20));
  world.serve({}, count_from(0, 20));
  std::set<const void*> gone;
  const Swapper swapper({.valuation = std::make_shared<NoValue>()});
  const auto nodes = swapper.leave(world.pool.tree(), {.now = world.clock.now()}, 100);
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

TEST(Swapper, FillsToLowMarkAndEvictsToHighMark) {
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
