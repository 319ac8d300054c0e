#include "scheduler/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Request request(RequestId id, int tokens, int computed, int priority = 0) {
  Request made;
  made.id = id;
  made.tokens.resize(tokens);
  made.computed_tokens = computed;
  made.priority = priority;
  return made;
}

std::vector<RequestId> order_of(const PolicyPlan& plan) {
  std::vector<RequestId> ids;
  for (const Request* one : plan.order) ids.push_back(one->id);
  return ids;
}

TEST(FcfsPolicy, DecodesThenPrefillsThenWaitingByPriorityAndArrival) {
  const Request prefill = request(1, 100, 20), first = request(2, 10, 9), second = request(3, 20, 19);
  const Request low = request(4, 5, 0, 1), normal = request(5, 5, 0), urgent = request(6, 5, 0, -1),
                later = request(7, 5, 0);
  const std::vector<const Request*> running{&prefill, &first, &second}, waiting{&low, &normal, &urgent, &later};
  const PolicyPlan plan = make_fcfs_policy()->plan({.running = running, .waiting = waiting}, {});
  EXPECT_THAT(order_of(plan), ElementsAre(2, 3, 1, 6, 5, 7, 4));
  EXPECT_EQ(plan.mode, Mode::kUnmerged);
  EXPECT_EQ(plan.merged, kBaseModel);
}

TEST(FcfsPolicy, NothingToDo) { EXPECT_TRUE(make_fcfs_policy()->plan({}, {}).order.empty()); }

TEST(MakePolicy, KnowsItsNames) {
  const auto made = make_policy("fcfs");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made.value()->name(), "fcfs");
  const auto unknown = make_policy("lifo");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(unknown.error().message, HasSubstr("lifo"));
  EXPECT_THAT(unknown.error().message, HasSubstr("fcfs"));
}

}  // namespace
}  // namespace valora::scheduler
