// Requests that wait for their images to be encoded while others run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "memory/simulated_mover.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/fake_runner.h"

namespace valora::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SchedulerMedia : public ::testing::Test {
 protected:
  void start(SchedulerConfig config, int32_t blocks, const char* policy = "unmerged") {
    pool_ = std::make_unique<memory::Pool>(memory::PoolConfig{.blocks = blocks}, mover_, clock_);
    runner_ = std::make_unique<testing::FakeRunner>(blocks);
    scheduler_ = std::make_unique<Scheduler>(config, *pool_, make_policy(policy).value(), clock_);
  }

  // image: number of image tokens, from the second token on.
  std::shared_ptr<Request> add(int prompt, int image = 0, AdapterId adapter = kBaseModel) {
    auto request = std::make_shared<Request>();
    request->id = ++ids_;
    request->adapter = request->merge = adapter;
    if (adapter != kBaseModel) request->decoder_adapters = {{adapter, 8, 1}};
    request->prompt_tokens = prompt;
    request->tokens.resize(prompt, static_cast<int32_t>(ids_));
    if (image > 0) request->identity.media = {{1, image, DigestBuilder().add(ids_).finish()}};
    EXPECT_TRUE(scheduler_->add(request).ok());
    return request;
  }

  // Returns the ids of the requests that ran.
  std::vector<RequestId> step() {
    const StepPlan plan = scheduler_->plan([this](const Request& request, int begin, int end) {
      return encoded_.contains(request.id) || begin >= 1 + request.identity.media[0].tokens ||
             end <= 1;
    });
    EXPECT_EQ(scheduler_->check(), "");
    preparing_.clear();
    for (const StepItem& item : plan.preparing) preparing_.push_back(item.request->id);
    const auto outputs = runner_->run(plan).value();
    scheduler_->complete(plan);
    std::vector<RequestId> ran;
    for (const StepItem& item : plan.items) ran.push_back(item.request->id);
    for (const StepOutput& output : outputs)
      for (const SampledToken& token : output.tokens) output.request->tokens.push_back(token.id);
    EXPECT_EQ(scheduler_->check(), "");
    return ran;
  }

  SimulatedClock clock_;
  memory::SimulatedMover mover_{{}, clock_};
  std::unique_ptr<memory::Pool> pool_;
  std::unique_ptr<testing::FakeRunner> runner_;
  std::unique_ptr<Scheduler> scheduler_;
  std::set<RequestId> encoded_;
  std::vector<RequestId> preparing_;

 private:
  RequestId ids_ = 0;
};

// Tokens 3 to 22 attend to each other.
TEST_F(SchedulerMedia, AStepRunsAllTokensOfAJointRangeOrNone) {
  start({.max_num_seqs = 2, .max_num_batched_tokens = 24}, 64);
  const std::vector<PositionRange> joint{{3, 23}};
  const auto request = add(40);
  request->joint = joint;
  step();
  EXPECT_EQ(request->computed_tokens, 24) << "its end is within the step";
  const auto second = add(40);
  second->joint = joint;
  step();
  EXPECT_EQ(request->computed_tokens, 40);
  EXPECT_EQ(second->computed_tokens, 3) << "8 tokens are left, and the range needs 20";
  step();
  EXPECT_EQ(second->computed_tokens, 26) << "next to one decode token";
}

TEST_F(SchedulerMedia, DecodesContinueWhileImageIsEncoded) {
  start({}, 64);
  add(5);
  EXPECT_THAT(step(), ElementsAre(1));
  const auto image = add(40, 30);
  for (int i = 0; i < 5; ++i) EXPECT_THAT(step(), ElementsAre(1));
  EXPECT_THAT(preparing_, ElementsAre(2));
  EXPECT_EQ(image->state, RequestState::kRunning) << "it has its memory";
  EXPECT_EQ(image->computed_tokens, 0);
  add(5);
  EXPECT_THAT(step(), ElementsAre(1, 3)) << "who comes later need not wait for it";
  encoded_ = {2};
  EXPECT_THAT(step(), ElementsAre(1, 3, 2));
  EXPECT_THAT(preparing_, IsEmpty());
  EXPECT_EQ(image->generated_tokens(), 1);
}

TEST_F(SchedulerMedia, EncodedImageDelaysNothing) {
  start({}, 64);
  encoded_ = {1};
  add(40, 30);
  EXPECT_THAT(step(), ElementsAre(1));
}

TEST_F(SchedulerMedia, OnlyImagesOfNextTokensMustBeEncoded) {
  start({.max_num_batched_tokens = 16}, 64);
  add(40, 30);
  step();
  EXPECT_THAT(preparing_, ElementsAre(1));
  encoded_ = {1};
  for (int i = 0; i < 2; ++i) EXPECT_THAT(step(), ElementsAre(1));
  encoded_.clear();  // tokens 32 to 39 are text after the image
  EXPECT_THAT(step(), ElementsAre(1));
}

TEST_F(SchedulerMedia, ImagesOfLaterTokensAreEncodedMeanwhile) {
  start({.max_num_batched_tokens = 16}, 64);
  encoded_ = {1};
  add(40, 30);
  EXPECT_THAT(step(), ElementsAre(1));
  EXPECT_THAT(preparing_, ElementsAre(1)) << "tokens 16 to 30 are needed next";
  EXPECT_THAT(step(), ElementsAre(1));
  EXPECT_THAT(preparing_, IsEmpty());
}

TEST_F(SchedulerMedia, ModeFollowsRunnableRequests) {
  start({}, 64, "merged");
  const auto image = add(40, 30, 1);
  add(5, 0, 2);
  step();
  EXPECT_THAT(preparing_, ElementsAre(image->id));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(step(), ElementsAre(2)) << "the oldest does not run yet";
}

TEST_F(SchedulerMedia, LaterRequestDoesNotTakeAwaitedBlocks) {
  start({}, 8);
  add(60);
  step();
  add(100, 90);  // does not fit together with the first one
  add(5);        // would fit
  EXPECT_THAT(step(), ElementsAre(1));
  EXPECT_THAT(preparing_, IsEmpty());
  scheduler_->finish(*scheduler_->running()[0]);
  EXPECT_THAT(step(), IsEmpty());
  EXPECT_THAT(preparing_, ElementsAre(2));
}

TEST_F(SchedulerMedia, RunningRequestClaimsBlocksFirst) {
  start({}, 8);
  const auto stream = add(14), image = add(80, 70);
  step();
  EXPECT_THAT(preparing_, ElementsAre(2));
  for (int i = 0; i < 60 && image->preemptions == 0; ++i) EXPECT_THAT(step(), ElementsAre(1));
  EXPECT_EQ(image->preemptions, 1);
  EXPECT_EQ(stream->preemptions, 0);
  scheduler_->finish(*stream);
  step();
  encoded_ = {2};
  EXPECT_THAT(step(), ElementsAre(2)) << "it comes back";
}

TEST_F(SchedulerMedia, PreparationIsBounded) {
  start({.max_preparing_tokens = 50}, 64);
  for (int i = 0; i < 4; ++i) add(40, 30);
  add(5);
  EXPECT_THAT(step(), ElementsAre(5));
  EXPECT_THAT(preparing_, ElementsAre(1, 2));
  encoded_ = {1};
  EXPECT_THAT(step(), ElementsAre(5, 1));
  EXPECT_THAT(preparing_, ElementsAre(2, 3));
}

}  // namespace
}  // namespace valora::scheduler
