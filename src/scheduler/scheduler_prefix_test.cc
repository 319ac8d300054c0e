// Requests that wait for the prefix that another one computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "memory/simulated_mover.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/fake_runner.h"
#include "scheduler/testing/scripted_policy.h"

namespace valora::scheduler {
namespace {

using namespace std::chrono_literals;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::Pair;
using testing::ScriptedPolicy;

class SchedulerPrefix : public ::testing::Test {
 protected:
  static constexpr int32_t kBlocks = 128;

  void start(SchedulerConfig config,
             std::unique_ptr<Policy> policy = make_policy("unmerged").value()) {
    scheduler_ = std::make_unique<Scheduler>(config, pool_, std::move(policy), clock_);
  }

  // A prompt of `common` tokens that all requests begin with, and `own` ones.
  std::shared_ptr<Request> make(int common, int own) {
    auto request = std::make_shared<Request>();
    request->id = ++ids_;
    request->arrival = clock_.now();
    request->prompt_tokens = common + own;
    request->tokens.resize(common + own, static_cast<int32_t>(1000 + ids_));
    std::iota(request->tokens.begin(), request->tokens.begin() + common, 0);
    return request;
  }
  std::shared_ptr<Request> add(std::shared_ptr<Request> request) {
    EXPECT_TRUE(scheduler_->add(request).ok());
    return request;
  }

  // Runs one step; returns (id, tokens) of its items.
  std::vector<std::pair<RequestId, int>> step() {
    const StepPlan plan = scheduler_->plan(media_);
    EXPECT_EQ(scheduler_->check(), "");
    const auto outputs = runner_.run(plan).value();
    scheduler_->complete(plan);
    std::vector<std::pair<RequestId, int>> items;
    for (const StepItem& item : plan.items) items.emplace_back(item.request->id, item.tokens);
    for (const StepOutput& output : outputs)
      for (const SampledToken& token : output.tokens) output.request->tokens.push_back(token.id);
    clock_.advance(10ms);
    return items;
  }

  SimulatedClock clock_;
  memory::SimulatedMover mover_{{}, clock_};
  memory::Pool pool_{memory::PoolConfig{.blocks = kBlocks}, mover_, clock_};
  testing::FakeRunner runner_{kBlocks};
  std::unique_ptr<Scheduler> scheduler_;
  MediaReady media_;
  RequestId ids_ = 0;
};

TEST_F(SchedulerPrefix, IsComputedOnceForRequestsThatComeTogether) {
  start({});
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 4; ++i) requests.push_back(add(make(160, 20)));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 180)));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 20), Pair(3, 20), Pair(4, 20)));
  for (const auto& request : requests)
    EXPECT_EQ(std::vector<int32_t>(request->tokens.begin() + 180, request->tokens.end()),
              testing::generate_alone({}, {request->tokens.begin(), request->tokens.begin() + 180},
                                      request->generated_tokens()));
}

TEST_F(SchedulerPrefix, IsAwaitedThroughTheChunksOfItsLeader) {
  start({.max_num_batched_tokens = 64});
  add(make(160, 20));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 64)));
  add(make(160, 20));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 64)));
  // The leader has 32 common tokens left: too few to begin to wait, but not to go on waiting.
  add(make(160, 20))->priority = 1;
  EXPECT_THAT(step(), ElementsAre(Pair(1, 52), Pair(3, 12)));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(3, 40), Pair(2, 20)));
}

TEST_F(SchedulerPrefix, OfFewTokensIsNotAwaited) {
  start({});
  add(make(63, 20));
  add(make(63, 20));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 83), Pair(2, 83)));
}

TEST_F(SchedulerPrefix, OfAnotherAdapterIsNotAwaitedButOneThatActsLaterIs) {
  start({});
  add(make(160, 20));
  const auto plain = make(160, 20), late = make(160, 20);
  plain->identity.adapter = DigestBuilder().add(1).finish();
  late->identity.late = DigestBuilder().add(2).finish();
  late->identity.late_from = 170;
  add(plain);
  add(late);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 180), Pair(2, 180)));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 20)));
}

TEST_F(SchedulerPrefix, OfALeaderThatEndsIsComputedByTheNext) {
  start({.max_num_batched_tokens = 64});
  const auto leader = add(make(160, 20));
  add(make(160, 20));
  add(make(160, 20));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 64)));
  scheduler_->finish(*leader);
  EXPECT_THAT(step(), ElementsAre(Pair(2, 64)));  // tokens 64 to 127
  EXPECT_THAT(step(), ElementsAre(Pair(2, 52)));
  EXPECT_THAT(step(), ElementsAre(Pair(2, 1), Pair(3, 20)));
}

TEST_F(SchedulerPrefix, OfALessUrgentRequestIsNotAwaited) {
  start({.max_num_batched_tokens = 64});
  add(make(160, 20))->priority = 1;
  step();
  add(make(160, 20));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 64)));
}

TEST_F(SchedulerPrefix, WithMediaOfItsOwnLaterDoesNotWait) {
  start({});
  const auto with_media = [&](uint64_t second) {
    const auto request = make(160, 20);
    request->identity.media = {{10, 40, DigestBuilder().add(7).finish()}};
    if (second > 0)
      request->identity.media.push_back({165, 5, DigestBuilder().add(second).finish()});
    return add(request);
  };
  with_media(0);
  with_media(0);
  with_media(3);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 180), Pair(3, 180)));
}

TEST_F(SchedulerPrefix, OfALeaderThatEncodesItsPictureTakesNoRoomTwice) {
  start({});
  bool encoded = false;
  media_ = [&](const Request&, int, int) { return encoded; };
  for (int i = 0; i < 3; ++i) {
    const auto request = make(160, 20);
    request->identity.media = {{10, 40, DigestBuilder().add(7).finish()}};
    add(request);
  }
  EXPECT_THAT(step(), ElementsAre());
  EXPECT_EQ(scheduler_->stats().running, 1);
  clock_.advance(1h);  // a slow tower
  EXPECT_THAT(step(), ElementsAre());
  EXPECT_EQ(scheduler_->stats().waiting, 2);
  encoded = true;
  EXPECT_THAT(step(), ElementsAre(Pair(1, 180)));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 20), Pair(3, 20)));
}

// The time in a long queue is not the leader's fault.
TEST_F(SchedulerPrefix, OfALeaderThatQueuedForLongIsAwaited) {
  start({.max_num_seqs = 3, .patience = 1s});
  std::vector<std::shared_ptr<Request>> busy;
  for (int i = 0; i < 3; ++i) busy.push_back(add(make(0, 20)));
  for (int i = 0; i < 3; ++i) add(make(160, 20));
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(step(), ElementsAre(Pair(1, _), Pair(2, _), Pair(3, _)));
    clock_.advance(1s);
  }
  for (const auto& request : busy) scheduler_->finish(*request);
  EXPECT_THAT(step(), ElementsAre(Pair(4, 180)));
  EXPECT_THAT(step(), ElementsAre(Pair(4, 1), Pair(5, 20), Pair(6, 20)));
}

// Left out by a policy, for instance.
TEST_F(SchedulerPrefix, OfALeaderThatDoesNotAdvanceIsComputedAgain) {
  bool first_runs = true;
  auto policy = std::make_unique<ScriptedPolicy>([&](const PolicyState& state) {
    PolicyPlan plan;
    for (RequestIndex i = first_runs ? 0 : state.running.size();
         i < state.running.size() + state.waiting.size(); ++i)
      plan.order.push_back(i);
    return plan;
  });
  start({.max_num_batched_tokens = 64, .patience = 1s}, std::move(policy));
  add(make(160, 20));
  step();
  add(make(160, 20));
  first_runs = false;
  EXPECT_THAT(step(), ElementsAre());
  clock_.advance(1s);
  EXPECT_THAT(step(), ElementsAre(Pair(2, 64)));
}

}  // namespace
}  // namespace valora::scheduler
