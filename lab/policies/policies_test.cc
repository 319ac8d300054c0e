// The rivals' policies on the schedules that test the product's: answers equal those given alone.
#include "lab/policies/policies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/testing/random_schedule.h"

namespace valora::bench {
namespace {

using scheduler::Policy;
using scheduler::testing::RandomSchedule;
using scheduler::testing::RandomWorld;

std::unique_ptr<Policy> make_dlora() { return make_compared_policy("dlora").value(); }
std::unique_ptr<Policy> make_vllm() { return make_compared_policy("vllm").value(); }

TEST(ComparedPolicies, AreRivalsAndThoseOfTheProduct) {
  for (const char* name : {"dlora", "vllm", "valora", "unmerged"})
    EXPECT_EQ(make_compared_policy(name).value()->name(), name);
  EXPECT_TRUE(make_dlora()->merges());
  EXPECT_FALSE(make_vllm()->merges());
  const auto unknown = make_compared_policy("lifo");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, ::testing::HasSubstr("lifo"));
}

TEST(ComparedPolicies, AnswersEqualThoseGivenAlone) {
  for (const auto make : {make_dlora, make_vllm}) {
    const RandomWorld world{.blocks = 12, .config = scheduler::testing::kSmall, .make = make};
    uint64_t preemptions = 0;
    int finished = 0;
    for (uint32_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(::testing::Message() << make()->name() << " seed " << seed);
      RandomSchedule schedule(world, seed);
      schedule.run_steps(1000);
      if (HasFailure()) return;
      preemptions += schedule.scheduler().stats().preemptions;
      finished += schedule.finished();
    }
    EXPECT_GT(finished, 8);
    EXPECT_GT(preemptions, 3u);
  }
}

TEST(ComparedPolicies, MakeProgressIfAdaptersFillThePool) {
  for (const auto make : {make_dlora, make_vllm}) {
    int finished = 0;
    uint32_t number = 0;
    for (RandomWorld world : scheduler::testing::filled_worlds()) {
      if (world.policy != "unmerged" || number++ % 5 != 0) continue;
      world.make = make;
      SCOPED_TRACE(::testing::Message() << make()->name() << " number " << number);
      RandomSchedule schedule(world, 10 * number);
      schedule.run_steps(200);
      if (HasFailure()) return;
      finished += schedule.finished();
    }
    EXPECT_GT(finished, 30);
  }
}

}  // namespace
}  // namespace valora::bench
