// Adapters in the pool: claims, loads, failures, dependencies and shares.
#include <gtest/gtest.h>

#include "memory/testing/pool_world.h"

namespace valora::memory {
namespace {

using testing::adapter;
using testing::check;
using testing::count_from;
using testing::identity_of;
using testing::User;
using testing::World;

const auto kA = adapter(1, 3), kB = adapter(2, 3), kC = adapter(3, 3);

User user_of(const AdapterNeed& need) { return {identity_of(need), {}, {}, {}}; }

Readiness claim(World& world, User& user) {
  world.pool.advance();
  return world.pool.claim(user.claim, user.identity, user.keys, 1);
}

TEST(PoolAdapters, ClaimLoadsAndHoldsAdapter) {
  World world({.blocks = 8});
  User user = user_of(kA);
  EXPECT_EQ(claim(world, user), Readiness::kLoadingAdapter);
  EXPECT_FALSE(world.pool.resident(kA.digest));
  EXPECT_EQ(check(world.pool, {&user}), "");
  world.settle();
  EXPECT_EQ(claim(world, user), Readiness::kReady);
  EXPECT_TRUE(world.pool.resident(kA.digest));
  EXPECT_EQ(world.pool.available_blocks(), 5);
  world.end(user);
  EXPECT_TRUE(world.pool.resident(kA.digest));  // as history
  EXPECT_EQ(world.pool.available_blocks(), 8);
  EXPECT_EQ(world.pool.stats().adapter_queries, 1u);
  EXPECT_EQ(world.pool.stats().adapter_hits, 0u);
  EXPECT_EQ(world.serve(identity_of(kA), count_from(0, 20)), 0);
  EXPECT_EQ(world.pool.stats().adapter_hits, 1u);
}

TEST(PoolAdapters, LoadEvictsOnlyIdleNodes) {
  World world({.blocks = 8});
  User first = user_of(kA), second = user_of(kB), third = user_of(kC);
  claim(world, first);
  claim(world, second);
  EXPECT_EQ(claim(world, third), Readiness::kFull);
  world.settle();
  EXPECT_EQ(claim(world, third), Readiness::kFull);
  EXPECT_EQ(check(world.pool, {&first, &second, &third}), "");
  world.end(first);
  EXPECT_EQ(claim(world, third), Readiness::kLoadingAdapter);
  EXPECT_FALSE(world.pool.resident(kA.digest));
  world.settle();
  EXPECT_EQ(claim(world, third), Readiness::kReady);
  EXPECT_EQ(world.pool.stats().adapters_left, 1u);
}

TEST(PoolAdapters, CancelsUnstartedAbandonedLoad) {
  World world({.blocks = 8});
  User first = user_of(kA), second = user_of(kB);
  claim(world, first);
  claim(world, second);
  world.end(second);
  EXPECT_EQ(world.pool.stats().adapter_blocks, 3);
  world.end(first);  // its copy is already running
  EXPECT_EQ(world.pool.stats().adapter_blocks, 3);
  world.settle();
  EXPECT_TRUE(world.pool.resident(kA.digest));
  EXPECT_FALSE(world.pool.resident(kB.digest));
  EXPECT_EQ(check(world.pool), "");
}

TEST(PoolAdapters, FailedLoadFailsClaimsAndIsRetriedForOthers) {
  bool broken = true;
  World world({.blocks = 8}, [&](const Move&) {
    return SimulatedMover::Outcome{broken ? Status(not_found("no such file")) : Status(), 1};
  });
  User first = user_of(kA), second = user_of(kA);
  claim(world, first);
  EXPECT_EQ(claim(world, second), Readiness::kLoadingAdapter);
  world.settle();
  for (User* user : {&first, &second}) {
    ASSERT_EQ(claim(world, *user), Readiness::kFailed);
    EXPECT_EQ(user->claim.error->message, "no such file");
  }
  EXPECT_EQ(check(world.pool, {&first, &second}), "");
  world.end(first);
  world.end(second);
  EXPECT_EQ(world.pool.stats().free, 8);
  EXPECT_EQ(world.pool.stats().loads.failed, 1u);
  broken = false;
  EXPECT_EQ(world.serve(identity_of(kA), count_from(0, 20)), 0);
}

TEST(PoolAdapters, CombinedAdaptersMustAllBeResident) {
  World world({.blocks = 8});
  User sum{{digest_of("sum"), {kA, kB}, {}}, {}, {}, {}};
  EXPECT_EQ(claim(world, sum), Readiness::kLoadingAdapter);
  world.settle();
  EXPECT_EQ(claim(world, sum), Readiness::kReady);
  EXPECT_TRUE(world.pool.resident(kA.digest) && world.pool.resident(kB.digest));
  EXPECT_EQ(world.pool.max_tokens(sum.identity.adapters), 32);
  EXPECT_EQ(world.pool.max_tokens(std::vector{kA, kB, kC}), 0);
  EXPECT_EQ(check(world.pool, {&sum}), "");
}

TEST(PoolAdapters, TwoScalesShareAdapterButNotKv) {
  World world({.blocks = 12});
  EXPECT_EQ(world.serve(identity_of(kA, 1), count_from(0, 40)), 0);
  EXPECT_EQ(world.serve(identity_of(kA, 2), count_from(0, 40)), 0);
  EXPECT_EQ(world.serve(identity_of(kA, 2), count_from(0, 40)), 32);
  EXPECT_EQ(world.pool.stats().loads.moves, 1u);
}

TEST(PoolAdapters, AdapterStaysWhileItsKvDoes) {
  World world({.blocks = 8, .dependencies = true});
  world.serve(identity_of(kA), count_from(0, 33));  // 3 + 2 blocks stay as history
  User second = user_of(kB);
  EXPECT_EQ(claim(world, second), Readiness::kLoadingAdapter);  // 3 blocks are free
  world.settle();
  BlockTable table;
  ASSERT_EQ(world.pool.reserve(table, 16), Room::kReserved);
  EXPECT_TRUE(world.pool.resident(kA.digest));
  ASSERT_EQ(world.pool.reserve(table, 5 * 16), Room::kReserved);
  EXPECT_FALSE(world.pool.resident(kA.digest));
  world.pool.release(table);
  EXPECT_EQ(check(world.pool, {&second}), "");
}

TEST(PoolAdapters, WithoutDependenciesKvMayBeInvalid) {
  World world({.blocks = 8});
  world.serve(identity_of(kA), count_from(0, 33));
  // The adapter is used no more than its KV, and evicting it frees more blocks at once.
  for (int i = 0; i < 5; ++i) {
    world.wait(std::chrono::seconds(1));
    User toucher = user_of(kA);
    toucher.identity.adapters.clear();  // uses the KV but not the adapter
    world.run(toucher, count_from(0, 33));
    world.end(toucher);
  }
  User second = user_of(kB);
  claim(world, second);
  User third = user_of(kC);
  claim(world, third);
  EXPECT_FALSE(world.pool.resident(kA.digest));
  EXPECT_EQ(world.pool.stats().invalid_blocks, 2);
  EXPECT_EQ(check(world.pool, {&second, &third}), "");
}

TEST(PoolAdapters, FixedSharesAreExclusive) {
  World world({.blocks = 10, .adapter_blocks = 3});
  User first = user_of(kA), second = user_of(kB);
  claim(world, first);
  EXPECT_EQ(claim(world, second), Readiness::kFull);
  BlockTable table;
  EXPECT_EQ(world.pool.reserve(table, 8 * 16), Room::kNone);
  EXPECT_EQ(world.pool.reserve(table, 7 * 16), Room::kReserved);
  EXPECT_EQ(world.pool.max_tokens(std::vector{kA}), 7 * 16);
  world.pool.release(table);
  world.settle();
  world.end(first);
  EXPECT_EQ(claim(world, second), Readiness::kLoadingAdapter);
}

TEST(PoolAdapters, KeptAdaptersRespectLimit) {
  World world({.blocks = 9, .kept_limit = 4});
  ASSERT_TRUE(world.pool.keep(kA, true).ok());
  world.pool.advance();
  world.settle();
  EXPECT_TRUE(world.pool.resident(kA.digest));
  const Status second = world.pool.keep(kB, true);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  BlockTable table;
  EXPECT_EQ(world.pool.reserve(table, 7 * 16), Room::kNone);
  ASSERT_TRUE(world.pool.keep(kA, false).ok());
  EXPECT_EQ(world.pool.reserve(table, 7 * 16), Room::kReserved);
  EXPECT_FALSE(world.pool.resident(kA.digest));
  EXPECT_TRUE(world.pool.keep(kB, true).ok());
}

TEST(PoolAdapters, ForgottenAdapterLeavesWithLastRequest) {
  World world({.blocks = 16});
  User user = user_of(kA);
  claim(world, user);
  world.settle();
  ASSERT_TRUE(world.run(user, count_from(0, 40)));
  world.pool.forget(kA.digest);
  EXPECT_TRUE(world.pool.resident(kA.digest));
  EXPECT_EQ(check(world.pool, {&user}), "");
  world.end(user);
  EXPECT_EQ(world.pool.stats().free, 16);
  EXPECT_EQ(world.pool.tree().adapters().size(), 0u);
  // The same content again: none of its KV was kept.
  EXPECT_EQ(world.serve(identity_of(kA), count_from(0, 40)), 0);
  EXPECT_EQ(world.pool.stats().loads.moves, 2u);
}

TEST(PoolAdapters, WithoutHistoryAdapterLeavesWithLastRequest) {
  World world({.blocks = 16, .history = false});
  world.serve(identity_of(kA), count_from(0, 40));
  EXPECT_EQ(world.pool.stats().free, 16);
}

TEST(PoolAdapters, ExpectUsesOnlyFreeBlocks) {
  World world({.blocks = 8});
  world.pool.expect(kA);
  world.pool.expect(kB);
  world.pool.expect(kC);
  world.settle();
  EXPECT_TRUE(world.pool.resident(kA.digest) && world.pool.resident(kB.digest));
  EXPECT_FALSE(world.pool.resident(kC.digest));
}

// Activated LoRA: the base model's blocks do not depend on the adapter whose request computed them.
TEST(PoolAdapters, KvBeforeLateAdapterIsSharedWithBase) {
  World world({.blocks = 12});
  KvIdentity late;
  late.adapters = {kA};
  late.late = kA.digest;
  late.late_from = 32;
  const auto tokens = count_from(0, 60);
  EXPECT_EQ(world.serve(late, tokens), 0);
  EXPECT_EQ(world.serve({}, tokens), 32);
  KvIdentity other = late;
  other.adapters = {kB};
  other.late = kB.digest;
  EXPECT_EQ(world.serve(other, tokens), 32);
  EXPECT_EQ(world.serve(late, tokens), 48) << "its own blocks, too";
  world.pool.forget(kA.digest);
  EXPECT_EQ(world.serve({}, tokens), 48) << "the base model's";
}

}  // namespace
}  // namespace valora::memory
