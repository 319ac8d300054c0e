// Prompts alongside decoding requests, with a limit on the time between tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "memory/simulated_mover.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/fake_runner.h"

namespace valora::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// A step takes 10 ms, plus nearly 1 ms per prompt token.
constexpr StepCosts kGapCosts{.step = 0.010, .prefill_token = 0.00099};

class SchedulerGapTest : public ::testing::Test {
 protected:
  void start(double gap, StepCosts costs = kGapCosts, double media_gap = 0) {
    costs_ = costs;
    pool_ = std::make_unique<memory::Pool>(
        memory::PoolConfig{.blocks = 256, .prefix_caching = false}, mover_, clock_);
    runner_ = std::make_unique<testing::FakeRunner>(256);
    scheduler_ = std::make_unique<Scheduler>(SchedulerConfig{.max_num_seqs = 8,
                                                             .max_num_batched_tokens = 500,
                                                             .max_decode_gap = gap,
                                                             .max_media_gap = media_gap,
                                                             .costs = costs},
                                             *pool_, make_policy("unmerged").value(), clock_);
  }
  // Like start(), after steps that showed the scheduler that the costs are accurate.
  void start_known(double gap, StepCosts costs = kGapCosts, double media_gap = 0) {
    start(gap, costs, media_gap);
    const auto decode = add(1);
    step();
    const auto prompt = media_gap > 0 ? add_picture(500) : add(500);
    for (int i = 0; i < 40; ++i) step();
    scheduler_->finish(*decode);
    scheduler_->finish(*prompt);
    ids_ = 0;
  }

  std::shared_ptr<Request> add(int prompt) {
    auto request = make(prompt);
    EXPECT_TRUE(scheduler_->add(request).ok());
    return request;
  }
  std::shared_ptr<Request> make(int prompt) {
    auto request = std::make_shared<Request>();
    request->id = ++ids_;
    request->arrival = clock_.now();
    request->prompt_tokens = prompt;
    request->tokens.resize(prompt);
    std::iota(request->tokens.begin(), request->tokens.end(), 1000 * static_cast<int32_t>(ids_));
    return request;
  }

  // A prompt with a picture that is already encoded.
  std::shared_ptr<Request> add_picture(int prompt) {
    auto request = make(prompt);
    request->identity.media.push_back({0, prompt / 2, DigestBuilder().add(1).finish()});
    EXPECT_TRUE(scheduler_->add(request).ok());
    return request;
  }

  // Runs one step whose prompts take `slower` times their estimate; returns (id, tokens).
  std::vector<std::pair<RequestId, int>> step(double slower = 1) {
    const StepPlan plan = scheduler_->plan();
    EXPECT_EQ(scheduler_->check(), "");
    const auto outputs = runner_->run(plan).value();
    scheduler_->complete(plan);
    StepCosts taken = costs_;
    taken.prefill_token *= slower;
    scheduler_->note_step(plan, from_seconds(taken.seconds(plan.shape)));
    for (const StepOutput& output : outputs)
      for (const SampledToken& token : output.tokens) output.request->tokens.push_back(token.id);
    std::vector<std::pair<RequestId, int>> items;
    for (const StepItem& item : plan.items) items.emplace_back(item.request->id, item.tokens);
    return items;
  }

  StepCosts costs_;
  SimulatedClock clock_;
  memory::SimulatedMover mover_{{}, clock_};
  std::unique_ptr<memory::Pool> pool_;
  std::unique_ptr<testing::FakeRunner> runner_;
  std::unique_ptr<Scheduler> scheduler_;
  RequestId ids_ = 0;
};

// Tokens 10 to 89 attend to each other; alongside a decode there is time for about 40.
TEST_F(SchedulerGapTest, ALimitDoesNotCutAJointRange) {
  start_known(0.050);
  const auto decode = add(1);
  step();
  const std::vector<PositionRange> joint{{10, 90}};
  const auto prompt = make(200);
  prompt->joint = joint;
  ASSERT_TRUE(scheduler_->add(prompt).ok());
  step();
  EXPECT_EQ(prompt->computed_tokens, 10) << "the step ends before the range";
  step();
  EXPECT_EQ(prompt->computed_tokens, 90) << "all of it, though it takes longer";
  step();
  EXPECT_LT(prompt->computed_tokens, 150);
}

TEST_F(SchedulerGapTest, APromptAloneRunsWhole) {
  start(0.050);
  add(400);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 400)));
}

TEST_F(SchedulerGapTest, PromptDuringDecodeIsLimitedToGap) {
  start_known(0.050);
  add(1);
  step();
  add(100);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 40)));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 40)));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 20)));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 1)));
}

TEST_F(SchedulerGapTest, AtLeastThreeStepTimesAreAllowed) {
  start_known(0.001);
  add(1);
  step();
  add(100);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 20)));
}

TEST_F(SchedulerGapTest, WithoutALimitAPromptTakesTheBudget) {
  start(0);
  add(1);
  step();
  add(100);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 100)));
}

TEST_F(SchedulerGapTest, ABoundForMediaHoldsForPromptsWithPicturesAndThoseAfterThem) {
  start_known(0, kGapCosts, 0.050);
  add(1);
  step();
  add_picture(100);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 40)));
  add(100);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 40)));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 20), Pair(3, 20)));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 80)));
}

TEST_F(SchedulerGapTest, TextAndPicturePromptsHaveSeparateBounds) {
  start_known(0.090, kGapCosts, 0.050);
  add(1);
  step();
  add_picture(100);
  add(100);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 40), Pair(3, 40)));
}

TEST_F(SchedulerGapTest, LongerContextShrinksChunk) {
  StepCosts costs = kGapCosts;
  costs.prefill_context = 0.0001;
  start_known(0.050, costs);
  add(1);
  step();
  add(200);
  const int first = step().back().second;
  const int second = step().back().second;
  EXPECT_LT(first, 40);
  EXPECT_LT(second, first) << "its tokens attend to those of the first step";
}

TEST_F(SchedulerGapTest, DecodeTimeReducesPromptBudget) {
  StepCosts costs = kGapCosts;
  costs.decode_context = 0.0001;  // 10 ms for 100 tokens
  start_known(0.070, costs);
  const auto decode = add(100);
  step();
  add(300);
  EXPECT_NEAR(step().back().second, 50, 1);
  EXPECT_EQ(decode->generated_tokens(), 2);
}

TEST_F(SchedulerGapTest, FirstPromptTakesGapAndDecodesStillRun) {
  start_known(0.050);
  add(1);
  step();
  add(100);
  add(100);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 40)));
  EXPECT_EQ(scheduler_->stats().waiting, 1) << "it holds no memory before its turn";
  step();
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 20), Pair(3, 20)));
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 40)));
}

TEST_F(SchedulerGapTest, ASlowMachineStillMakesProgress) {
  StepCosts slow = kGapCosts;
  slow.prefill_token = 1;
  start(0.050, slow);
  add(1);
  step();
  const auto request = add(100);
  EXPECT_THAT(step(), ElementsAre(Pair(1, 1), Pair(2, Scheduler::kLeastChunk)));
  for (int i = 0; i < 7; ++i) step();
  EXPECT_GT(request->generated_tokens(), 0);
}

TEST_F(SchedulerGapTest, ChunkFollowsMeasuredTimeOfLimitedSteps) {
  start(0.050);
  add(1);
  step();
  add(3'000);
  EXPECT_EQ(step(3).back().second, Scheduler::kLeastChunk) << "they are taken to be slow";
  int tokens = 0;
  for (int i = 0; i < 20; ++i) tokens = step(3).back().second;
  EXPECT_NEAR(kGapCosts.step + 3 * kGapCosts.prefill_token * tokens, 0.050, 0.010);
}

}  // namespace
}  // namespace valora::scheduler
