#include "scheduler/policies/policy.h"

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

std::vector<RequestId> order_of(const PolicyState& state, const PolicyPlan& plan) {
  std::vector<RequestId> ids;
  for (const RequestIndex i : plan.order) ids.push_back(state[i].id);
  return ids;
}

TEST(UnmergedPolicy, DecodesThenPrefillsThenWaitingByPriorityAndArrival) {
  const Request prefill = request(1, 100, 20), first = request(2, 10, 9),
                second = request(3, 20, 19);
  const Request low = request(4, 5, 0, 1), normal = request(5, 5, 0), urgent = request(6, 5, 0, -1),
                later = request(7, 5, 0);
  const std::vector<const Request*> running{&prefill, &first, &second},
      waiting{&low, &normal, &urgent, &later};
  const PolicyState state{.running = running, .waiting = waiting};
  const PolicyPlan plan = make_policy("unmerged").value()->plan(state, {});
  EXPECT_THAT(order_of(state, plan), ElementsAre(2, 3, 1, 6, 5, 7, 4));
  EXPECT_EQ(plan.mode, Mode::kUnmerged);
  EXPECT_EQ(plan.merged, kBaseModel);
}

TEST(UnmergedPolicy, EmptyStateGivesEmptyPlan) {
  EXPECT_TRUE(make_policy("unmerged").value()->plan({}, {}).order.empty());
}

constexpr AdapterId kFirst = 4, kSecond = 7, kThird = 9;

Request of(AdapterId merge, RequestId id, int tokens = 10, int computed = 9) {
  Request made = request(id, tokens, computed);
  made.adapter = made.merge = merge;
  if (merge != kBaseModel) made.decoder_adapters = {{merge, 16}};
  made.arrival = TimePoint{} + std::chrono::seconds(id);
  return made;
}

std::vector<const Request*> all_of(const std::vector<Request>& requests) {
  std::vector<const Request*> pointers;
  for (const Request& one : requests) pointers.push_back(&one);
  return pointers;
}

// A plan with request ids, which remain valid after the requests are gone.
struct Planned {
  Mode mode;
  AdapterId merged;
  std::vector<RequestId> order;
};

Planned plan_of(const Policy& policy, const std::vector<Request>& running,
                const std::vector<Request>& waiting, AdapterId merged = kBaseModel,
                int token_budget = 1000, int max_sequences = 100) {
  const auto r = all_of(running), w = all_of(waiting);
  const PolicyState state{.running = r,
                          .waiting = w,
                          .token_budget = token_budget,
                          .max_sequences = max_sequences,
                          .weights = {.merged = merged, .held = merged}};
  const PolicyPlan plan = policy.plan(state, {});
  return {plan.mode, plan.merged, order_of(state, plan)};
}

TEST(MergedPolicy, ServesTheAdapterOfTheOldestRequestAlone) {
  const auto policy = make_policy("merged").value();
  EXPECT_TRUE(policy->merges());
  const Planned plan = plan_of(*policy, {of(kSecond, 2), of(kFirst, 3), of(kSecond, 6, 100, 20)},
                               {of(kSecond, 4, 5, 0), of(kBaseModel, 5, 5, 0)});
  EXPECT_EQ(plan.mode, Mode::kMerged);
  EXPECT_EQ(plan.merged, kSecond);
  EXPECT_THAT(plan.order, ElementsAre(2, 6, 4));
}

TEST(MergedPolicy, OlderWaitingRequestStopsRunningOnes) {
  const Planned plan = plan_of(*make_policy("merged").value(), {of(kFirst, 3), of(kFirst, 4)},
                               {of(kSecond, 2, 5, 0), of(kFirst, 5, 5, 0)}, kFirst);
  EXPECT_EQ(plan.merged, kSecond);
  EXPECT_THAT(plan.order, ElementsAre(2));
}

TEST(MergedPolicy, PriorityPrecedesAge) {
  std::vector<Request> waiting{of(kFirst, 1, 5, 0), of(kSecond, 2, 5, 0)};
  waiting[1].priority = -1;
  EXPECT_EQ(plan_of(*make_policy("merged").value(), {}, waiting).merged, kSecond);
}

TEST(MergedPolicy, TheBaseModelRunsOnItsOwnWeights) {
  const Planned plan = plan_of(*make_policy("merged").value(), {of(kBaseModel, 1), of(kFirst, 2)},
                               {of(kBaseModel, 3, 5, 0)}, kFirst);
  EXPECT_EQ(plan.mode, Mode::kUnmerged);
  EXPECT_EQ(plan.merged, kBaseModel);
  EXPECT_THAT(plan.order, ElementsAre(1, 3));
  EXPECT_TRUE(plan_of(*make_policy("merged").value(), {}, {}).order.empty());
}

// An adapter with an endless stream of requests must not starve the other one.
TEST(MergedPolicy, NoAdapterStarves) {
  const auto policy = make_policy("merged").value();
  std::vector<Request> queue{of(kFirst, 1), of(kFirst, 2), of(kSecond, 3)};
  for (RequestId next = 4; next < 10; ++next) {
    const Planned plan = plan_of(*policy, queue, {});
    if (plan.merged == kSecond) return;
    std::erase_if(queue, [&](const Request& one) {
      return one.id == plan.order.front();
    });  // each request takes one step
    queue.push_back(of(kFirst, next));
  }
  FAIL() << "the request of the other adapter never ran";
}

TEST(MixturePolicy, MergesMostFrequentAdapterAndRunsAll) {
  const auto policy = make_policy("mixture").value();
  EXPECT_TRUE(policy->merges());
  const Planned plan = plan_of(*policy, {of(kBaseModel, 1), of(kFirst, 2), of(kSecond, 3)},
                               {of(kSecond, 4, 5, 0), of(kBaseModel, 5, 5, 0)});
  EXPECT_EQ(plan.mode, Mode::kMixture);
  EXPECT_EQ(plan.merged, kSecond);
  EXPECT_THAT(plan.order, ElementsAre(1, 2, 3, 4, 5));
}

TEST(MixturePolicy, AnAdapterThatChangesOthersIsMergedOnceItIsAlone) {
  const auto policy = make_policy("mixture").value();
  std::vector<Request> running{of(kFirst, 1), of(kFirst, 2), of(kFirst, 3)};
  for (Request& own : running) own.merges_among_others = false;
  EXPECT_EQ(plan_of(*policy, running, {}).merged, kFirst);
  const Planned waits = plan_of(*policy, running, {of(kBaseModel, 4, 5, 0)}, kFirst);
  EXPECT_EQ(waits.mode, Mode::kUnmerged) << "even while the other one waits";
  EXPECT_EQ(waits.merged, kBaseModel);
  running.push_back(of(kSecond, 5));
  const Planned mixed = plan_of(*policy, running, {}, kFirst);
  EXPECT_EQ(mixed.mode, Mode::kUnmerged);
  EXPECT_THAT(mixed.order, ElementsAre(1, 2, 3, 5));
}

TEST(MixturePolicy, BaseRequestsOnlyRunUnmerged) {
  const Planned plan = plan_of(*make_policy("mixture").value(), {of(kBaseModel, 1)},
                               {of(kBaseModel, 2, 5, 0)}, kFirst);
  EXPECT_EQ(plan.mode, Mode::kUnmerged);
  EXPECT_EQ(plan.merged, kBaseModel);
  EXPECT_THAT(plan.order, ElementsAre(1, 2));
}

TEST(MixturePolicy, KeepsMergedAdapterUntilAnotherHasOverTwiceTheRequests) {
  const auto policy = make_policy("mixture").value();
  std::vector<Request> running{of(kFirst, 1), of(kSecond, 2)};
  EXPECT_EQ(plan_of(*policy, running, {}).merged, kFirst) << "a tie goes to the first in order";
  EXPECT_EQ(plan_of(*policy, running, {}, kSecond).merged, kSecond);
  running.push_back(of(kFirst, 3));
  EXPECT_EQ(plan_of(*policy, running, {}, kSecond).merged, kSecond);
  running.push_back(of(kFirst, 4));
  EXPECT_EQ(plan_of(*policy, running, {}, kSecond).merged, kFirst);
  EXPECT_EQ(plan_of(*policy, running, {}, kThird).merged, kFirst) << "the merged one runs no more";
}

TEST(MixturePolicy, CountsOnlyRequestsThatFitStep) {
  const auto policy = make_policy("mixture").value();
  const std::vector<Request> running{of(kFirst, 1)},
      waiting{of(kSecond, 2, 8, 0), of(kSecond, 3, 8, 0)};
  EXPECT_EQ(plan_of(*policy, running, waiting).merged, kSecond);
  EXPECT_EQ(plan_of(*policy, running, waiting, kBaseModel, 9).merged, kFirst)
      << "tokens for two requests";
  EXPECT_EQ(plan_of(*policy, running, waiting, kBaseModel, 1000, 2).merged, kFirst)
      << "two sequences";
}

TEST(MakePolicy, CreatesPoliciesByName) {
  for (const PolicyRow& row : policies()) {
    const auto made = make_policy(std::string(row.name));
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(made.value()->name(), row.name);
  }
  EXPECT_FALSE(make_policy("unmerged").value()->merges());
  const auto unknown = make_policy("lifo");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(unknown.error().message, HasSubstr("lifo"));
  EXPECT_THAT(unknown.error().message, HasSubstr("unmerged"));
}

}  // namespace
}  // namespace valora::scheduler
