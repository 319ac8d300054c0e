#include "scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "memory/simulated_mover.h"
#include "scheduler/testing/fake_runner.h"
#include "scheduler/testing/scripted_policy.h"

namespace valora::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::ScriptedPolicy;

class SchedulerTest : public ::testing::Test {
 protected:
  void start(SchedulerConfig config, int32_t blocks,
             std::unique_ptr<Policy> policy = make_policy("unmerged").value(),
             bool prefix_caching = true) {
    cache = std::make_unique<memory::Pool>(
        memory::PoolConfig{.blocks = blocks, .prefix_caching = prefix_caching}, mover, clock);
    runner = std::make_unique<testing::FakeRunner>(blocks);
    scheduler = std::make_unique<Scheduler>(config, *cache, std::move(policy), clock);
  }

  // Prompts differ in their first token by default.
  std::shared_ptr<Request> make(int prompt, AdapterId adapter = kBaseModel, int32_t first = -1) {
    auto request = std::make_shared<Request>();
    request->id = ++ids;
    request->arrival = clock.now();
    request->adapter = adapter;
    request->prompt_tokens = prompt;
    request->tokens.resize(prompt);
    std::iota(request->tokens.begin(), request->tokens.end(), 0);
    if (prompt > 0) request->tokens[0] = first >= 0 ? first : static_cast<int32_t>(1000 + ids);
    if (adapter != kBaseModel) request->identity.adapter = DigestBuilder().add(adapter).finish();
    return request;
  }
  std::shared_ptr<Request> add(int prompt, AdapterId adapter = kBaseModel, int32_t first = -1) {
    auto request = make(prompt, adapter, first);
    EXPECT_TRUE(scheduler->add(request).ok());
    return request;
  }

  // Runs one step; returns (id, tokens) of its items.
  std::vector<std::pair<RequestId, int>> step() {
    const StepPlan plan = scheduler->plan();
    EXPECT_EQ(scheduler->check(), "");
    const auto outputs = runner->run(plan).value();
    scheduler->complete(plan);
    std::vector<std::pair<RequestId, int>> items;
    for (const StepItem& item : plan.items) items.emplace_back(item.request->id, item.tokens);
    for (const StepOutput& output : outputs)
      for (const SampledToken& token : output.tokens) output.request->tokens.push_back(token.id);
    EXPECT_EQ(scheduler->check(), "");
    return items;
  }

  void run_until(const std::function<bool()>& reached) {
    for (int i = 0; i < 200 && !reached() && !HasFailure(); ++i) step();
    ASSERT_TRUE(reached());
  }
  void run_until_preemptions(uint64_t count) {
    run_until([&] { return scheduler->stats().preemptions >= count; });
  }

  std::vector<RequestId> waiting_ids() const {
    std::vector<RequestId> ids;
    for (const auto& request : scheduler->waiting()) ids.push_back(request->id);
    return ids;
  }

  SimulatedClock clock;
  memory::SimulatedMover mover{{}, clock};
  std::unique_ptr<memory::Pool> cache;
  std::unique_ptr<testing::FakeRunner> runner;
  std::unique_ptr<Scheduler> scheduler;
  RequestId ids = 0;
};

TEST_F(SchedulerTest, PrefillsInChunksThenDecodes) {
  start({.max_num_batched_tokens = 32}, 64);
  const auto request = add(70);
  StepPlan plan = scheduler->plan();
  ASSERT_EQ(plan.items.size(), 1u);
  EXPECT_FALSE(plan.items[0].yields);
  EXPECT_EQ(plan.total_tokens, 32);
  (void)runner->run(plan);
  scheduler->complete(plan);
  EXPECT_EQ(request->computed_tokens, 32);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 32)));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 6)));
  EXPECT_EQ(request->generated_tokens(), 1);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1)));
  EXPECT_EQ(request->generated_tokens(), 2);
}

TEST_F(SchedulerTest, DecodesComeBeforeALongPrefill) {
  start({.max_num_batched_tokens = 16}, 64);
  add(4);
  step();
  add(100);
  add(3);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 15)));
  for (int i = 0; i < 5; ++i) EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 15)));
  // 10 tokens of the prefill remain; the next request gets the rest of the budget.
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 10), Pair(3, 3)));
}

TEST_F(SchedulerTest, BudgetAndSequenceLimitHold) {
  start({.max_num_seqs = 3, .max_num_batched_tokens = 8}, 64);
  for (int i = 0; i < 5; ++i) add(2);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 2), Pair(2, 2), Pair(3, 2)));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 1)));
  scheduler->finish(*scheduler->running()[1]);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(3, 1), Pair(4, 2)));
  EXPECT_EQ(scheduler->stats().running, 3);
  EXPECT_EQ(scheduler->stats().waiting, 1);
}

TEST_F(SchedulerTest, EverySequenceGetsAtLeastATokenOfTheBudget) {
  start({.max_num_seqs = 64, .max_num_batched_tokens = 4}, 64);
  for (int i = 0; i < 6; ++i) add(1);
  EXPECT_EQ(step().size(), 4u);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 1), Pair(4, 1)));
}

TEST_F(SchedulerTest, RefusesRequestsThatCanNeverRun) {
  start({}, 4);
  const auto code = [&](std::shared_ptr<Request> request) {
    const Status status = scheduler->add(std::move(request));
    return status.ok() ? std::string("ok") : status.error().message;
  };
  EXPECT_THAT(code(make(0)), HasSubstr("no tokens"));
  EXPECT_THAT(code(make(64)), HasSubstr("65 tokens"));
  auto twice = make(63);
  EXPECT_EQ(code(twice), "ok");
  step();
  EXPECT_THAT(code(twice), HasSubstr("twice"));
  auto crossed = make(20);
  crossed->identity.media = {{5, 5, digest_of("a")}, {9, 2, digest_of("b")}};
  EXPECT_THAT(code(crossed), HasSubstr("media"));
  auto outside = make(20);
  outside->identity.media = {{15, 6, digest_of("a")}};
  EXPECT_THAT(code(outside), HasSubstr("media"));
}

TEST_F(SchedulerTest, RequestsOfOneAdapterAreAdjacent) {
  start({}, 64);
  for (AdapterId adapter : {2, kBaseModel, 2, 1, kBaseModel, 2}) add(3, adapter);
  EXPECT_THAT(step(),
              ElementsAre(Pair(1, 3), Pair(3, 3), Pair(6, 3), Pair(2, 3), Pair(5, 3), Pair(4, 3)));
}

TEST_F(SchedulerTest, ReportsFirstRunAndCachedTokens) {
  start({.max_num_batched_tokens = 64}, 16);
  clock.advance(std::chrono::seconds(3));
  const auto first = add(40, kBaseModel, 7);
  step();
  EXPECT_TRUE(first->scheduled_once);
  EXPECT_EQ(first->first_scheduled, TimePoint{} + std::chrono::seconds(3));
  EXPECT_EQ(first->cached_tokens, 0);
  const auto second = add(40, kBaseModel, 7);
  EXPECT_FALSE(second->scheduled_once);
  clock.advance(std::chrono::seconds(1));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 8)));
  EXPECT_EQ(second->first_scheduled, TimePoint{} + std::chrono::seconds(4));
  EXPECT_EQ(second->cached_tokens, 32);
  EXPECT_EQ(first->tokens[40], second->tokens[40]);
  step();
  EXPECT_EQ(first->first_scheduled, TimePoint{} + std::chrono::seconds(3));
}

TEST_F(SchedulerTest, AnEvictedPrefixIsComputedAgain) {
  start({.max_num_batched_tokens = 64}, 4);
  const auto first = add(40, kBaseModel, 7);
  step();
  scheduler->finish(*first);
  const auto other = add(60);
  step();
  scheduler->finish(*other);
  const auto again = add(40, kBaseModel, 7);
  step();
  EXPECT_EQ(again->cached_tokens, 0);
  EXPECT_EQ(again->tokens[40], first->tokens[40]);
}

// Two requests grow from 4 of the 5 blocks until they need more than the arena has.
TEST_F(SchedulerTest, PreemptsTheYoungestAndRecomputesIt) {
  start({}, 5);
  const auto first = add(30), second = add(20);
  run_until_preemptions(1);
  EXPECT_EQ(second->state, RequestState::kWaiting);
  EXPECT_EQ(second->preemptions, 1);
  EXPECT_EQ(second->computed_tokens, 0);
  EXPECT_TRUE(second->table.blocks.empty());
  // The second request kept its blocks and waited while the first took the last free one.
  EXPECT_EQ(second->tokens.size(), 33u);
  EXPECT_EQ(first->tokens.size(), 50u);
  // Later arrivals do not overtake it, and it is not admitted while the first request needs the
  // memory.
  add(1);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(waiting_ids(), ElementsAre(2, 3));
  scheduler->finish(*first);
  step();
  EXPECT_EQ(second->state, RequestState::kRunning);
  run_until([&] { return second->generated_tokens() == 30; });
  const std::vector<int32_t> prompt(second->tokens.begin(), second->tokens.begin() + 20);
  const std::vector<int32_t> generated(second->tokens.begin() + 20, second->tokens.end());
  EXPECT_EQ(generated, testing::generate_alone({}, prompt, second->generated_tokens()));
  EXPECT_EQ(second->cached_tokens, 0);
}

TEST_F(SchedulerTest, PreemptedRequestReusesRemainingPrefix) {
  start({}, 7);
  const auto first = add(40), second = add(40);
  run_until_preemptions(1);
  scheduler->finish(*first);
  const uint64_t hits = cache->stats().hit_tokens;
  step();
  EXPECT_EQ(cache->stats().hit_tokens, hits + 32);
  EXPECT_EQ(second->cached_tokens, 0);  // counts the first admission only
}

TEST_F(SchedulerTest, PreemptedRequestsWaitInTheOrderOfArrival) {
  start({.max_num_seqs = 4}, 8);
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 3; ++i) {
    requests.push_back(add(30));
    clock.advance(std::chrono::milliseconds(1));
  }
  step();
  add(30);
  run_until_preemptions(2);
  EXPECT_THAT(waiting_ids(), ElementsAre(2, 3, 4));
  EXPECT_EQ(requests[0]->preemptions, 0);
}

TEST_F(SchedulerTest, AdmissionLeavesBlocksForRunningRequests) {
  for (const auto& [blocks, admitted] : {std::pair(4, 1), std::pair(5, 2)}) {
    start({}, blocks);
    add(17);
    add(17);
    EXPECT_EQ(step().size(), static_cast<size_t>(admitted));
    EXPECT_EQ(scheduler->stats().waiting, 2 - admitted);
  }
}

TEST_F(SchedulerTest, ALoneRequestMayTakeAllMemory) {
  start({}, 3);
  const auto request = add(47);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 47)));
  const StepPlan plan = scheduler->plan();
  ASSERT_EQ(plan.items.size(), 1u);
  scheduler->complete(plan);
  EXPECT_EQ(cache->available_blocks(), 0);
  EXPECT_EQ(scheduler->check(), "");
  // check() reports states that the engine must prevent.
  request->tokens.push_back(0);
  EXPECT_THAT(scheduler->check(), HasSubstr("49 tokens"));
}

TEST_F(SchedulerTest, FinishWorksInEveryState) {
  start({.max_num_seqs = 2}, 16);
  const auto running = add(20), cancelled = add(20), waiting = add(20);
  const StepPlan plan = scheduler->plan();
  ASSERT_EQ(plan.items.size(), 2u);
  (void)runner->run(plan);
  scheduler->finish(*cancelled);  // cancelled while the step ran
  scheduler->complete(plan);
  EXPECT_EQ(cancelled->computed_tokens, 0);
  scheduler->finish(*waiting);
  scheduler->finish(*waiting);
  EXPECT_EQ(scheduler->check(), "");
  EXPECT_EQ(waiting->state, RequestState::kFinished);
  EXPECT_EQ(scheduler->stats().running, 1);
  EXPECT_EQ(scheduler->stats().waiting, 0);
  scheduler->finish(*running);
  EXPECT_TRUE(scheduler->idle());
  EXPECT_EQ(cache->usage(), 0);
  EXPECT_THAT(step(), IsEmpty());
}

TEST_F(SchedulerTest, FinishMayReleaseLastReference) {
  start({}, 16);
  std::weak_ptr<Request> watched = add(20);
  step();
  scheduler->finish(*scheduler->running()[0]);
  EXPECT_TRUE(watched.expired());
}

TEST_F(SchedulerTest, ARequestWithoutNewTokensDoesNotRun) {
  start({}, 16);
  add(20);
  const StepPlan plan = scheduler->plan();
  scheduler->complete(plan);
  EXPECT_TRUE(scheduler->plan().items.empty());
}

TEST_F(SchedulerTest, KeepsPolicyWeightsAndState) {
  std::vector<std::pair<AdapterId, double>> seen;
  start({}, 16, std::make_unique<ScriptedPolicy>([&](const PolicyState& state) {
          seen.emplace_back(state.weights.merged, state.memory.saved);
          std::vector<RequestIndex> order;
          if (seen.size() == 1) order = {0};
          return PolicyPlan{
              .mode = Mode::kMixture, .merged = 3, .order = order, .memory = {.saved = 7}};
        }));
  add(20, 3)->merge = 3;
  for (int i = 0; i < 2; ++i) {
    const StepPlan plan = scheduler->plan();
    EXPECT_EQ(plan.mode, Mode::kMixture);
    EXPECT_EQ(plan.merged, 3);
  }
  EXPECT_THAT(seen, ElementsAre(Pair(kBaseModel, 0), Pair(3, 7)));
}

// Whatever the policy says: a policy that forgets the rule gives no wrong answers.
TEST_F(SchedulerTest, OthersNeverRunOnWeightsThatChangeThem) {
  start({}, 16, std::make_unique<ScriptedPolicy>([](const PolicyState& state) {
          PolicyPlan plan{.mode = Mode::kMixture, .merged = 3};
          for (RequestIndex i = 0; i < state.size(); ++i) plan.order.push_back(i);
          return plan;
        }));
  const std::shared_ptr<Request> own = add(20, 3), other = add(20, 4);
  own->merge = 3;
  own->decoder_adapters = {{3, 8, 1}};
  other->merge = 4;
  own->merges_among_others = false;
  StepPlan plan = scheduler->plan();
  EXPECT_EQ(plan.items.size(), 2u);
  EXPECT_EQ(plan.mode, Mode::kUnmerged);
  EXPECT_EQ(plan.merged, kBaseModel);
  scheduler->finish(*other);
  plan = scheduler->plan();
  EXPECT_EQ(plan.items.size(), 1u);
  EXPECT_EQ(plan.mode, Mode::kMerged);
  EXPECT_EQ(plan.merged, 3);
  own->merges_among_others = true;
  add(20);
  EXPECT_EQ(scheduler->plan().mode, Mode::kMixture);
}

TEST_F(SchedulerTest, AMergedAdapterStaysInThePoolUntilItsRoomIsNeeded) {
  AdapterId merged = 3;
  start({}, 8, std::make_unique<ScriptedPolicy>([&](const PolicyState& state) {
          PolicyPlan plan{.mode = Mode::kMixture, .merged = merged};
          for (RequestIndex i = 0; i < state.size(); ++i) plan.order.push_back(i);
          return plan;
        }));
  const auto request = make(20, 3);
  request->merge = 3;
  request->merge_need = {digest_of("adapter"), 4};
  request->identity.adapters = {request->merge_need};
  ASSERT_TRUE(scheduler->add(request).ok());
  EXPECT_TRUE(scheduler->plan().waits_for_copies);
  clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(scheduler->plan().merged, 3);
  scheduler->finish(*request);
  add(60);  // 4 blocks
  EXPECT_EQ(scheduler->plan().merged, 3);
  EXPECT_TRUE(cache->resident(digest_of("adapter")));
  add(60);
  const StepPlan plan = scheduler->plan();
  EXPECT_EQ(plan.merged, 3);  // no room for the second adapter yet
  scheduler->finish(*scheduler->running()[0]);
  add(100);
  scheduler->finish(*scheduler->waiting()[0]);
  EXPECT_EQ(scheduler->plan().mode, Mode::kUnmerged);
  EXPECT_EQ(scheduler->running().size(), 1u);
  EXPECT_FALSE(cache->resident(digest_of("adapter")));
  EXPECT_EQ(scheduler->check(), "");
}

TEST_F(SchedulerTest, RequestLeftOutByPolicyKeepsBlocks) {
  bool leave_out = false;
  start({}, 6, std::make_unique<ScriptedPolicy>([&](const PolicyState& state) {
          PolicyPlan plan;
          const size_t first = leave_out ? state.running.size() : 0;
          for (size_t i = first; i < state.size(); ++i) plan.order.push_back(i);
          return plan;
        }));
  const auto first = add(40);
  step();
  leave_out = true;
  add(20);
  EXPECT_THAT(step(), ElementsAre(Pair(2, 20)));
  EXPECT_EQ(first->table.blocks.size(), 3u);
  EXPECT_THAT(step(), IsEmpty());
  // Unless nothing else can run.
  add(90);
  EXPECT_THAT(step(), ElementsAre(Pair(3, 90)));
  EXPECT_EQ(scheduler->stats().preemptions, 2u);
  EXPECT_THAT(waiting_ids(), ElementsAre(1, 2));
}

TEST_F(SchedulerTest, WaitingRequestInFrontPreemptsNoRunningOne) {
  start({}, 4, std::make_unique<ScriptedPolicy>([](const PolicyState& state) {
          PolicyPlan plan;
          const auto running = static_cast<RequestIndex>(state.running.size());
          for (RequestIndex i = running; i < state.size(); ++i) plan.order.push_back(i);
          for (RequestIndex i = 0; i < running; ++i) plan.order.push_back(i);
          return plan;
        }));
  add(40);
  step();
  add(40);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1)));
  EXPECT_EQ(scheduler->stats().preemptions, 0u);
}

TEST_F(SchedulerTest, PlacedRequestIsNotPreemptedInSamePlan) {
  start({}, 5, std::make_unique<ScriptedPolicy>([](const PolicyState& state) {
          PolicyPlan plan;
          for (RequestIndex i = 0; i < state.size(); ++i) plan.order.push_back(i);
          // A request that appears twice in an order is placed once.
          for (RequestIndex i = 0; i < state.running.size(); ++i) plan.order.push_back(i);
          plan.order.push_back(static_cast<RequestIndex>(state.size()));  // out of range: ignored
          return plan;
        }));
  const auto first = add(30), second = add(20);
  run_until_preemptions(1);
  EXPECT_EQ(first->preemptions, 0);
  EXPECT_EQ(second->preemptions, 1);
}

}  // namespace
}  // namespace valora::scheduler
