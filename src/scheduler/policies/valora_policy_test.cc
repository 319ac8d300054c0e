// Algorithm 1 over costs: the mode of a step, and which requests it serves first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "scheduler/policies/policy.h"

namespace valora::scheduler {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr AdapterId kA = 1, kB = 2, kC = 3;
constexpr TimePoint kNow = TimePoint{} + 100s;

// A machine on which low-rank products cost a tenth of a step, and a merge two steps.
constexpr StepCosts kCosts{
    .step = 0.010, .prefill_token = 1e-4, .decode_token = 1e-4, .rank = 1e-4, .merge = 0.020};

class Queue {
 public:
  explicit Queue(const StepCosts& costs = kCosts) : costs_(costs) {}

  Request& decode(AdapterId adapter) { return add(running_, adapter, 10, 9); }
  Request& wait(AdapterId adapter, int tokens = 10) { return add(waiting_, adapter, tokens, 0); }

  PolicyPlan plan(TimePoint now = kNow) {
    const auto running = view(running_), waiting = view(waiting_);
    state_.running = running;
    state_.waiting = waiting;
    state_.costs = &costs_;
    PolicyPlan plan = policy_->plan(state_, now);
    ids_.clear();
    for (const RequestIndex i : plan.order) ids_.push_back(state_[i].id);
    return plan;
  }
  // Plans, and switches to the plan's weights.
  PolicyPlan step() {
    PolicyPlan plan = this->plan();
    state_.weights = change_to(plan.merged, state_.weights).after;
    state_.memory = plan.memory;
    return plan;
  }
  const std::vector<RequestId>& ids() const { return ids_; }
  PolicyState& state() { return state_; }
  void clear() {
    running_.clear();
    waiting_.clear();
  }

 private:
  static std::vector<const Request*> view(const std::deque<Request>& requests) {
    std::vector<const Request*> pointers;
    for (const Request& one : requests) pointers.push_back(&one);
    return pointers;
  }
  Request& add(std::deque<Request>& queue, AdapterId adapter, int tokens, int computed) {
    Request& made = queue.emplace_back();
    made.id = next_++;
    made.arrival = made.last_scheduled = kNow;
    made.adapter = made.merge = adapter;
    if (adapter != kBaseModel) made.decoder_adapters = {{adapter, 16}};
    made.tokens.resize(tokens);
    made.prompt_tokens = computed > 0 ? tokens - 1 : tokens;
    made.computed_tokens = computed;
    return made;
  }

  std::unique_ptr<Policy> policy_ = make_policy("valora").value();
  LiveCosts costs_;
  std::deque<Request> running_, waiting_;
  PolicyState state_{.token_budget = 2048, .max_sequences = 8};
  std::vector<RequestId> ids_;
  RequestId next_ = 1;
};

TEST(ValoraPolicy, EmptyStateGivesEmptyPlan) { EXPECT_THAT(Queue().plan().order, IsEmpty()); }

TEST(ValoraPolicy, MergesOnceTheMergeIsPaidFor) {
  Queue queue;
  for (int i = 0; i < 4; ++i) queue.decode(kA);
  // Each unmerged step takes 1.6 ms longer than a merged one, so the merge pays for itself after
  // 13.
  int unmerged = 0;
  while (queue.step().mode == Mode::kUnmerged) ASSERT_LT(++unmerged, 30);
  EXPECT_EQ(unmerged, 12);
  EXPECT_EQ(queue.state().weights.merged, kA);
  EXPECT_NE(queue.step().mode, Mode::kUnmerged);
}

TEST(ValoraPolicy, MixesOnceOthersWereDelayedLongEnough) {
  Queue queue;
  queue.state().weights = {.merged = kA, .held = kA};
  for (int i = 0; i < 6; ++i) queue.decode(kA);
  Request& other = queue.decode(kB);
  PolicyPlan plan = queue.plan();
  EXPECT_EQ(plan.mode, Mode::kMerged);
  EXPECT_THAT(queue.ids(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(plan.passed, ElementsAre(6));
  other.passed = 200ms;
  plan = queue.plan();
  EXPECT_NE(plan.mode, Mode::kMerged);
  EXPECT_EQ(queue.ids().size(), 7u);
  EXPECT_EQ(queue.ids().front(), other.id);
  EXPECT_THAT(plan.passed, IsEmpty());
}

TEST(ValoraPolicy, SmallGainDoesNotJustifyMergedMode) {
  StepCosts costs = kCosts;
  costs.rank = 8e-5;  // leaving out one of seven would yield 7 % more
  Queue queue(costs);
  queue.state().weights = {.merged = kA, .held = kA};
  for (int i = 0; i < 6; ++i) queue.decode(kA);
  queue.decode(kB);
  EXPECT_NE(queue.plan().mode, Mode::kMerged);
}

TEST(ValoraPolicy, NeverTakesAModeThatCostsMore) {
  // Only the arithmetic of the products costs time: subtracting costs as much as adding.
  Queue queue({.step = 0.010, .token_rank = 1e-4, .merge = 1e-9});
  for (int i = 0; i < 2; ++i) queue.decode(kA);
  for (const AdapterId other : {kB, kC})
    for (int i = 0; i < 2; ++i) queue.decode(other).passed = 1s;
  queue.state().weights = {.merged = kA, .held = kA};
  EXPECT_EQ(queue.plan().mode, Mode::kUnmerged);
  for (int i = 0; i < 6; ++i) queue.decode(kA);
  queue.state().max_sequences = 12;
  EXPECT_EQ(queue.plan().mode, Mode::kMixture);
}

TEST(ValoraPolicy, NoMixtureWithAnAdapterThatChangesOthers) {
  Queue queue({.step = 0.010, .token_rank = 1e-4, .merge = 1e-9});
  queue.state().weights = {.merged = kA, .held = kA};
  for (int i = 0; i < 8; ++i) queue.decode(kA).merges_among_others = false;
  EXPECT_EQ(queue.plan().merged, kA);
  for (int i = 0; i < 4; ++i) queue.decode(kB).passed = 1s;
  queue.state().max_sequences = 12;
  EXPECT_EQ(queue.plan().mode, Mode::kUnmerged);
}

TEST(ValoraPolicy, QueueFillingStepIsServedMerged) {
  StepCosts costs = kCosts;
  costs.rank = 2e-4;
  Queue queue(costs);
  queue.state().weights = {.merged = kA, .held = kA};
  queue.state().token_budget = 64;
  Request& other = queue.wait(kB, 64);
  other.arrival = kNow - 10s;
  for (int i = 0; i < 8; ++i) queue.wait(kA, 64);
  EXPECT_EQ(queue.plan().mode, Mode::kMerged) << "the budget is full either way";
  EXPECT_THAT(queue.ids(), ::testing::Not(::testing::Contains(other.id)));
  EXPECT_THAT(queue.plan().passed, ElementsAre(0)) << "the others have no place in any mode";
  other.passed = 1s;
  EXPECT_NE(queue.plan().mode, Mode::kMerged);
  EXPECT_EQ(queue.ids().front(), other.id);
}

TEST(ValoraPolicy, StarvingRequestsRunFirstByOverrun) {
  Queue queue;
  queue.wait(kA).id = 11;
  Request& passed = queue.wait(kB);
  passed.id = 12;
  passed.passed = 1s;
  Request& strict = queue.wait(kC);
  strict.id = 13;
  strict.tolerance = 1ms;
  Request& longer = queue.wait(kB);
  longer.id = 14;
  longer.passed = 2s;
  Request& patient = queue.wait(kB);
  patient.id = 15;
  patient.arrival = patient.last_scheduled = kNow - 3s;
  patient.tolerance = 10s;
  queue.decode(kA).id = 1;
  queue.plan();
  EXPECT_THAT(queue.ids(), ElementsAre(1, 14, 12, 13, 11, 15)) << "a decode takes one token alone";
  patient.tolerance = 100ms;
  queue.plan();
  EXPECT_THAT(queue.ids(), ElementsAre(1, 15, 14, 12, 13, 11));
}

TEST(ValoraPolicy, DecodesLeaveHalfOfTheSequencesToStarvingPrompts) {
  Queue queue;
  for (int i = 0; i < 8; ++i) queue.decode(kA);
  for (int i = 0; i < 6; ++i) queue.wait(kB).passed = 1s;
  queue.plan();
  EXPECT_THAT(std::vector(queue.ids().begin(), queue.ids().begin() + 8),
              ElementsAre(1, 2, 3, 4, 9, 10, 11, 12));
}

TEST(ValoraPolicy, WhileMostOfTheBatchStarvesAMergeMustSaveFourTimesItsCost) {
  Queue queue;
  for (int i = 0; i < 4; ++i) queue.decode(kA).passed = 1s;
  int unmerged = 0;
  while (queue.step().mode == Mode::kUnmerged) ASSERT_LT(++unmerged, 100);
  EXPECT_EQ(unmerged, 49);  // each step loses 1.6 ms
}

// On a slow machine, or with long prompts: a delay that no mode can avoid must not rule out a mode.
TEST(ValoraPolicy, StepLongerThanToleranceDoesNotBlockMerge) {
  StepCosts costs = kCosts;
  costs.prefill_token = 1e-3;
  costs.token_rank = 1e-5;  // 160 ms for 1,000 tokens, far more than a merge
  Queue queue(costs);
  queue.wait(kA, 1000);
  EXPECT_EQ(queue.plan().merged, kA);
}

TEST(ValoraPolicy, MergedModeIsRefusedIfStepExceedsTolerance) {
  StepCosts costs = kCosts;
  costs.prefill_token = 1e-3;
  costs.rank = 1e-2;
  Queue queue(costs);
  queue.state().weights = {.merged = kA, .held = kA};
  for (int i = 0; i < 6; ++i) queue.decode(kA);
  Request& prompt = queue.wait(kA, 100);
  queue.decode(kB);
  EXPECT_EQ(queue.plan().mode, Mode::kMerged);
  prompt.tokens.resize(300);
  EXPECT_NE(queue.plan().mode, Mode::kMerged);
}

// Two long prompts of different adapters: neither has most requests, but one fills the step.
TEST(ValoraPolicy, AdapterWithMostTokensIsCandidate) {
  StepCosts costs = kCosts;
  costs.token_rank = 1e-5;
  Queue queue(costs);
  queue.state().token_budget = 1200;
  queue.wait(kA, 1000);
  queue.wait(kB, 1000);
  EXPECT_EQ(queue.plan().merged, kA);
}

TEST(ValoraPolicy, CostOfMergingOverwrittenAdapterAgainCounts) {
  StepCosts costs = kCosts;
  costs.token_rank = 2e-6;  // 32 ms for the prompt
  Queue queue(costs);
  queue.wait(kB, 1000);
  EXPECT_EQ(queue.plan().merged, kB);
  queue.state().weights = {.merged = kA, .held = kA};
  EXPECT_EQ(queue.plan().merged, kB) << "no request is of the merged adapter";
  queue.decode(kA);
  EXPECT_NE(queue.plan().merged, kB);
}

// A part of the second prompt saves it no step, and delays the first one.
TEST(ValoraPolicy, ChunkWithoutEarlierFirstTokenGainsNothing) {
  Queue queue;
  queue.state().weights = {.merged = kA, .held = kA};
  queue.state().token_budget = 1200;
  queue.wait(kA, 1000);
  Request& other = queue.wait(kB, 1000);
  EXPECT_EQ(queue.plan().mode, Mode::kMerged);
  other.tokens.resize(1400);  // takes two steps, or one after a part of it runs now
  EXPECT_NE(queue.plan().mode, Mode::kMerged);
}

TEST(ValoraPolicy, SwitchingCostCountsInItsStep) {
  StepCosts costs = kCosts;
  costs.switching = 1e-3;  // the switch saves 1.6 ms of low-rank products
  for (const bool dear : {false, true}) {
    if (dear) costs.switching = 2e-3;
    Queue queue(costs);
    queue.state().weights = {.held = kA};
    for (int i = 0; i < 4; ++i) queue.decode(kA);
    EXPECT_EQ(queue.plan().merged, dear ? kBaseModel : kA);
  }
}

TEST(ValoraPolicy, RapidlyChangingLoadIsNotMerged) {
  Queue queue;
  for (int i = 0; i < 100; ++i) {
    queue.clear();
    for (int n = 0; n < 4; ++n) queue.decode(i / 5 % 2 == 0 ? kA : kB);
    EXPECT_EQ(queue.step().mode, Mode::kUnmerged) << "step " << i;
  }
}

TEST(ValoraPolicy, InPlaceMergeStaysWhileCheaper) {
  StepCosts costs = kCosts;
  costs.restore = 0.020;
  Queue queue(costs);
  queue.state().weights = {.merged = kA, .held = kA, .in_place = true};
  queue.decode(kB);
  queue.decode(kA);
  EXPECT_EQ(queue.plan().mode, Mode::kMixture) << "restoring the base is not free";
  queue.clear();
  queue.decode(kB);
  EXPECT_EQ(queue.plan().merged, kBaseModel) << "no request of the merged adapter is left";
}

TEST(ValoraPolicy, RunsUnmergedWithoutCosts) {
  Queue queue(StepCosts{});
  for (int i = 0; i < 8; ++i) queue.decode(kA);
  EXPECT_EQ(queue.plan().mode, Mode::kUnmerged);
  EXPECT_EQ(queue.ids().size(), 8u);
}

TEST(ValoraPolicy, OnlyRequestsWithRoomAreCounted) {
  Queue queue;
  queue.state().weights = {.merged = kA, .held = kA};
  queue.state().free_tokens = 5;
  queue.decode(kB);
  for (int i = 0; i < 6; ++i) queue.wait(kA);
  EXPECT_EQ(queue.plan().mode, Mode::kUnmerged) << "the waiting ones get no memory";
}

TEST(ValoraPolicy, WithoutRoomForAnyRequestTheOrderStays) {
  Queue queue;
  queue.state().free_tokens = 5;
  queue.wait(kA);
  queue.wait(kB);
  EXPECT_EQ(queue.plan().mode, Mode::kUnmerged);
  EXPECT_THAT(queue.ids(), ElementsAre(1, 2));
}

// The first token is due: the time of its whole prompt counts, not only that of a step.
TEST(ValoraPolicy, PrefillTimeCountsTowardsStarvation) {
  Queue queue;
  queue.wait(kA, 100);
  Request& due = queue.wait(kB, 1000);  // 110 ms of prefill
  due.tolerance = 500ms;
  due.arrival = due.last_scheduled = kNow - 300ms;
  queue.plan();
  EXPECT_THAT(queue.ids(), ElementsAre(1, 2));
  due.arrival = due.last_scheduled = kNow - 400ms;
  queue.plan();
  EXPECT_THAT(queue.ids(), ElementsAre(2, 1));
}

}  // namespace
}  // namespace valora::scheduler
