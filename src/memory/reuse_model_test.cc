#include "memory/reuse_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "memory/running_slope.h"
#include "memory/testing/pool_world.h"

namespace valora::memory {
namespace {

using namespace std::chrono_literals;
using testing::adapter;
using testing::count_from;
using testing::identity_of;
using testing::World;

AdapterNode visited(int times) {
  AdapterNode node;
  for (int i = 0; i < times; ++i) node.visits.add(1);
  return node;
}

// Nodes of a group that are visited at `rate` per second, each observed for at most `seconds`.
void observe(ReuseModel& model, int group, double rate, double seconds, int nodes = 2000) {
  std::mt19937 random(1);
  std::exponential_distribution<double> until(rate);
  constexpr double kStep = 0.05;
  for (int i = 0; i < nodes; ++i) {
    const double visit = until(random);
    double idle = 0;
    for (; idle < std::min(visit, seconds); idle += kStep) model.wait(group, idle + kStep, kStep);
    if (visit < seconds) model.visit(group, visit);
  }
  model.refresh();
}

TEST(ReuseModel, WithoutDataOldestIsLeastValuable) {
  const ReuseModel model;
  const int group = ReuseModel::group_of(visited(1), 1);
  for (double idle = 0.1; idle < 1000; idle *= 3)
    EXPECT_GT(model.log_rate(group, idle), model.log_rate(group, 3 * idle));
}

TEST(ReuseModel, LearnsTheRateOfEachGroup) {
  ReuseModel model;
  const int seldom = ReuseModel::group_of(visited(1), 1),
            often = ReuseModel::group_of(visited(9), 1);
  ASSERT_NE(seldom, often);
  observe(model, seldom, 0.02, 60);
  observe(model, often, 0.5, 60);
  EXPECT_NEAR(std::exp(model.log_rate(seldom, 20)), 0.02, 0.008);
  EXPECT_NEAR(std::exp(model.log_rate(often, 2)), 0.5, 0.1);
}

// For example a camera that sends a chunk every ten seconds: right after a visit the next one is
// far off, then it becomes likely.
TEST(ReuseModel, LearnsRisingVisitRate) {
  ReuseModel model;
  const int group = ReuseModel::group_of(visited(2), 1);
  for (int i = 0; i < 2000; ++i) {
    for (double idle = 0; idle < 10; idle += 0.1) model.wait(group, idle + 0.1, 0.1);
    model.visit(group, 10);
  }
  model.refresh();
  EXPECT_GT(model.log_rate(group, 8), model.log_rate(group, 0.1) + 0.5);
}

TEST(ReuseModel, OldObservationsFade) {
  ReuseModel model;
  const int group = ReuseModel::group_of(visited(1), 1);
  observe(model, group, 1, 60);
  for (int i = 0; i < 40; ++i) model.fade(0.8);
  observe(model, group, 0.02, 60, 200);
  EXPECT_LT(std::exp(model.log_rate(group, 5)), 0.1);
}

TEST(ReuseModel, GroupsConversationApartFromSharedPrefix) {
  World world({.blocks = 64});
  world.serve({}, count_from(0, 81));
  world.serve({}, count_from(0, 161));
  DependencyTree& tree = const_cast<DependencyTree&>(world.pool.tree());  // for inspection
  const auto groups = [&](const std::vector<int32_t>& tokens) {
    std::vector<int> found;
    for (const KvNode* node :
         tree.resident_prefix(tree.find_root({}), testing::keys_of({}, tokens)))
      found.push_back(ReuseModel::group_of(*node));
    return found;
  };
  const std::vector<int> one = groups(count_from(0, 161));
  ASSERT_EQ(one.size(), 10u);
  for (const int group : one) EXPECT_EQ(group, one.front());

  std::vector<int32_t> branch = count_from(0, 48);
  for (const int32_t token : count_from(7000, 40)) branch.push_back(token);
  world.serve({}, branch);
  const std::vector<int> now = groups(count_from(0, 161));
  for (int i = 0; i < 3; ++i) EXPECT_NE(now[i], now.back());
  for (int i = 3; i < 10; ++i) EXPECT_EQ(now[i], now.back());
  EXPECT_NE(groups(branch).back(), now.back());  // the other conversation is in its first turn
}

// Cheap adapters are evicted in favour of expensive KV, even if they were used more recently.
TEST(ReuseModel, ExpensiveNodesStay) {
  World world({.blocks = 16});
  const AdapterNeed first = adapter(1, 4), second = adapter(2, 4);
  for (int i = 0; i < 30; ++i) {
    world.serve({}, count_from(0, 97));
    world.wait(1s);
  }
  world.serve(identity_of(first), {1});
  world.serve(identity_of(second), {1});
  world.wait(1s);
  world.serve(identity_of(adapter(3, 4)), {1});
  EXPECT_EQ(world.pool.resident_tokens({}, testing::keys_of({}, count_from(0, 97))), 96);
}

TEST(RunningSlope, FollowsThePoints) {
  RunningSlope slope(5, 1);
  EXPECT_EQ(slope.slope(), 5);
  for (int i = 0; i < 50; ++i) slope.add(7, 100);  // equal x: no information about the slope
  EXPECT_EQ(slope.slope(), 5);
  for (int i = 0; i < 400; ++i) slope.add(i % 10 * 10, 3 + i % 10 * 20);
  EXPECT_NEAR(slope.slope(), 2, 0.05);
  for (int i = 0; i < 1000; ++i) slope.add(0, 3);  // decode steps only
  EXPECT_NEAR(slope.slope(), 2, 0.05);
  for (int i = 0; i < 400; ++i) slope.add(i % 10 * 10, 3 - i % 10 * 20);
  EXPECT_EQ(slope.slope(), 0);
}

}  // namespace
}  // namespace valora::memory
