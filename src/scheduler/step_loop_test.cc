#include "scheduler/step_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/pool.h"
#include "memory/simulated_mover.h"

#include <functional>
#include <set>

namespace valora::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Yields token 7 for each item; a step takes 10 ms, 2 ms of it in prepare().
class ScriptedExecutor final : public StepExecutor {
 public:
  explicit ScriptedExecutor(SimulatedClock& clock) : clock_(clock) {}

  bool ready(const Request&, int, int) const override { return encoded; }
  std::vector<FailedRequest> prepare(const StepPlan&) override {
    clock_.advance(std::chrono::milliseconds(2));
    return std::exchange(failing, {});
  }
  Result<std::vector<StepOutput>> run(const StepPlan& plan) override {
    ++runs;
    clock_.advance(std::chrono::milliseconds(8));
    if (step_error) return *std::exchange(step_error, {});
    std::vector<StepOutput> outputs;
    for (const StepItem& item : plan.items)
      if (item.yields) {
        outputs.push_back({item.request, {{.id = 7}}, {}, output_error});
        outputs.back().waits = waiting.contains(item.request);
      }
    return outputs;
  }

  std::vector<FailedRequest> failing;
  bool encoded = true;  // the images of all requests are encoded
  std::optional<Error> step_error, output_error;
  std::set<const Request*> waiting;  // requests without a result yet
  int runs = 0;

 private:
  SimulatedClock& clock_;
};

class StepLoopTest : public ::testing::Test, StepListener {
 protected:
  std::shared_ptr<Request> add(int tokens) {
    auto request = std::make_shared<Request>();
    request->id = ++ids_;
    request->prompt_tokens = tokens;
    request->tokens.resize(tokens, static_cast<int32_t>(ids_));
    EXPECT_TRUE(scheduler_.add(request).ok());
    return request;
  }

  void on_planned(const StepPlan& plan) override {
    planned_.push_back(static_cast<int>(plan.items.size()));
    clock_.advance(std::chrono::milliseconds(1));
  }
  void on_output(StepOutput& output) override {
    for (const SampledToken& token : output.tokens) output.request->tokens.push_back(token.id);
    outputs_.push_back(output.request->id);
    if (finish_all_) finish_all();
  }
  void on_failed(Request& request, const Error& error) override {
    failed_.emplace_back(error.message);
    scheduler_.finish(request);
    if (finish_all_) finish_all();
  }
  void finish_all() {
    while (!scheduler_.running().empty()) scheduler_.finish(*scheduler_.running().front());
  }

  SimulatedClock clock_;
  memory::SimulatedMover mover_{{}, clock_};
  memory::Pool cache_{{.blocks = 16}, mover_, clock_};
  Scheduler scheduler_{{}, cache_, make_policy("unmerged").value(), clock_};
  ScriptedExecutor executor_{clock_};
  StepLoop loop_{scheduler_, executor_, *this, clock_};
  bool finish_all_ = false;
  std::vector<int> planned_;
  std::vector<RequestId> outputs_;
  std::vector<std::string> failed_;

 private:
  RequestId ids_ = 0;
};

TEST_F(StepLoopTest, RunsAStepAndReportsItsTimes) {
  const auto a = add(20), b = add(3);
  const StepReport report = loop_.step();
  EXPECT_EQ(report.tokens, 23);
  EXPECT_EQ(report.sequences, 2);
  EXPECT_DOUBLE_EQ(report.seconds, 0.011);
  EXPECT_DOUBLE_EQ(report.overhead_seconds, 0.001);
  EXPECT_DOUBLE_EQ(report.cost_seconds, 0.009) << "all but prepare()";
  EXPECT_THAT(outputs_, ElementsAre(1, 2));
  EXPECT_EQ(a->computed_tokens, 20);
  EXPECT_EQ(b->tokens.back(), 7);
}

TEST_F(StepLoopTest, EmptyLoopDoesNothing) {
  EXPECT_EQ(loop_.step().sequences, 0);
  EXPECT_EQ(executor_.runs, 0);
  EXPECT_THAT(planned_, IsEmpty());
}

TEST_F(StepLoopTest, PreparationFailureAffectsNoOtherRequest) {
  const auto broken = add(5), sound = add(6);
  executor_.failing = {{broken.get(), internal("its image is broken")}};
  const StepReport report = loop_.step();
  EXPECT_EQ(report.tokens, 6);
  EXPECT_EQ(report.sequences, 1);
  EXPECT_THAT(failed_, ElementsAre("its image is broken"));
  EXPECT_THAT(outputs_, ElementsAre(2));
  EXPECT_EQ(broken->state, RequestState::kFinished);
  EXPECT_EQ(scheduler_.check(), "");
}

TEST_F(StepLoopTest, NothingRunsIfNoRequestCouldBePrepared) {
  const auto broken = add(5);
  executor_.failing = {{broken.get(), internal("its image is broken")}};
  loop_.step();
  EXPECT_EQ(executor_.runs, 0);
  EXPECT_TRUE(scheduler_.idle());
}

TEST_F(StepLoopTest, ARequestWhoseImageIsNotEncodedDelaysNoOther) {
  const auto image = add(5);
  image->identity.media = {{1, 3, {}}};
  executor_.encoded = false;
  StepReport report = loop_.step();
  EXPECT_EQ(report.sequences, 0);
  EXPECT_FALSE(report.waits_for_copies) << "there is more to do at once";
  EXPECT_EQ(executor_.runs, 0);
  EXPECT_THAT(planned_, ElementsAre(0));
  const auto text = add(6);
  report = loop_.step();
  EXPECT_EQ(report.sequences, 1);
  EXPECT_THAT(outputs_, ElementsAre(text->id));
  executor_.failing = {{image.get(), internal("its image is broken")}};
  EXPECT_EQ(loop_.step().sequences, 1);
  EXPECT_THAT(failed_, ElementsAre("its image is broken"));
  EXPECT_EQ(image->state, RequestState::kFinished);
  EXPECT_THAT(outputs_, ElementsAre(text->id, text->id));
}

TEST_F(StepLoopTest, FailedStepFailsItsRequestsAndLoopContinues) {
  add(5), add(6);
  executor_.step_error = internal("the model failed");
  loop_.step();
  EXPECT_THAT(failed_, ElementsAre("the model failed", "the model failed"));
  EXPECT_THAT(outputs_, IsEmpty());
  EXPECT_EQ(cache_.available_blocks(), cache_.total_blocks());
  const auto next = add(4);
  loop_.step();
  EXPECT_THAT(outputs_, ElementsAre(next->id));
}

TEST_F(StepLoopTest, NothingComputedInAFailedStepIsShared) {
  add(40);
  executor_.step_error = internal("the model failed");
  loop_.step();
  const auto same = add(40);
  same->tokens.assign(40, 1);
  loop_.step();
  EXPECT_EQ(same->cached_tokens, 0);
}

TEST_F(StepLoopTest, ARequestThatAnEarlierOutputEndedGetsNoOutput) {
  add(5), add(6);
  finish_all_ = true;
  loop_.step();
  EXPECT_THAT(outputs_, ElementsAre(1));
  EXPECT_TRUE(scheduler_.idle());
}

TEST_F(StepLoopTest, RequestEndedByFailureCallbackIsNotFailedAgain) {
  add(5), add(6);
  finish_all_ = true;
  executor_.step_error = internal("the model failed");
  loop_.step();
  EXPECT_THAT(failed_, ElementsAre("the model failed"));
}

TEST_F(StepLoopTest, DeferredResultRerunsLastToken) {
  const auto slow = add(20), other = add(3);
  executor_.waiting = {slow.get()};
  StepReport report = loop_.step();
  EXPECT_EQ(report.tokens, 23);
  EXPECT_EQ(report.cost_seconds, 0) << "a deferred step must not affect the costs";
  EXPECT_THAT(outputs_, ElementsAre(other->id));
  EXPECT_EQ(slow->computed_tokens, 19);
  EXPECT_EQ(slow->tokens.size(), 20);
  report = loop_.step();
  EXPECT_EQ(report.tokens, 2);
  EXPECT_EQ(slow->computed_tokens, 19);
  EXPECT_EQ(other->computed_tokens, 4);
  EXPECT_EQ(scheduler_.check(), "");
  executor_.waiting = {};
  EXPECT_EQ(loop_.step().tokens, 2);
  EXPECT_THAT(outputs_, ElementsAre(other->id, other->id, slow->id, other->id));
  EXPECT_EQ(slow->computed_tokens, 20);
  EXPECT_EQ(slow->tokens.size(), 21);
  EXPECT_GT(loop_.step().cost_seconds, 0);
  EXPECT_EQ(slow->computed_tokens, 21);
  EXPECT_EQ(scheduler_.check(), "");
}

TEST_F(StepLoopTest, OutputErrorFailsOnlyItsRequest) {
  add(5);
  executor_.output_error = internal("its logits are not numbers");
  loop_.step();
  EXPECT_THAT(failed_, ElementsAre("its logits are not numbers"));
  EXPECT_THAT(outputs_, IsEmpty());
}

TEST_F(StepLoopTest, ARequestThatItsOwnerDropsMidStepStaysAliveUntilTheEnd) {
  std::weak_ptr<Request> request = add(5);
  finish_all_ = true;  // releases the last owner
  loop_.step();
  EXPECT_TRUE(request.expired());
}

}  // namespace
}  // namespace valora::scheduler
