// Requests in an engine on a fake model: the contracts of api/engine.h in every state of a request.
#include "serving/testing/fake_engine_fixture.h"

namespace valora::serving {
namespace {

using namespace testing;

TEST_F(FakeEngineTest, ZeroMaxTokensGeneratesNothing) {
  start();
  auto request = ask(numbered_prompt(40, 9), 0);
  request.sampling.n = 2;
  const Answer answer = run(request);
  ASSERT_TRUE(answer.done);
  ASSERT_EQ(answer.choices.size(), 2u);
  for (const auto& [index, choice] : answer.choices) {
    EXPECT_TRUE(choice.tokens.empty());
    EXPECT_EQ(choice.text, "");
    EXPECT_EQ(choice.finish->reason, FinishReason::kLength);
  }
  EXPECT_EQ(answer.done->usage.completion_tokens, 0);
  EXPECT_EQ(answer.done->usage.prompt_tokens, 40);
  EXPECT_GT(run(ask(numbered_prompt(40, 9), 3)).done->usage.cached_tokens, 0)
      << "what was computed is kept";
}

TEST_F(FakeEngineTest, RepeatedPromptHitsCacheWithSameAnswer) {
  start();
  const auto request = ask(numbered_prompt(40, 9), 6);
  const Answer first = run(request), second = run(request);
  EXPECT_EQ(first.done->usage.cached_tokens, 0);
  EXPECT_EQ(second.done->usage.cached_tokens, 32);
  EXPECT_EQ(second.started->cached_tokens, 32);
  EXPECT_EQ(first.first().tokens, second.first().tokens);
}

TEST_F(FakeEngineTest, CancelledSinkReceivesNothing) {
  start();
  Gate gate;
  const auto running = gated_sink(gate, 3);
  const RequestHandle handle = submit(ask(numbered_prompt(10, 1), 200), running);
  gate.wait_for_arrival();
  // The engine thread is blocked in the sink; these two requests are waiting or being prepared.
  const auto waiting = std::make_shared<WaitingSink>();
  const RequestHandle waiting_handle = submit(ask(numbered_prompt(10, 2), 5), waiting);
  const auto other = submit(ask(numbered_prompt(10, 3), 5));
  engine_->cancel(handle);
  engine_->cancel(waiting_handle);
  engine_->cancel(waiting_handle);
  engine_->cancel(987654);
  const int calls = running->calls();
  gate.open();
  EXPECT_TRUE(other->wait().done);
  drain();
  EXPECT_EQ(running->calls(), calls);
  EXPECT_EQ(waiting->calls(), 0);
  EXPECT_EQ(engine_->stats().running, 0);
  EXPECT_EQ(engine_->stats().kv_usage, 0);
}

TEST_F(FakeEngineTest, TheQueueBoundIsExact) {
  options_.max_waiting = 3;
  start();
  for (int round = 0; round < 2; ++round) {
    Gate gate;
    const auto running = gated_sink(gate);
    submit(ask(numbered_prompt(4, 1), 3), running);
    gate.wait_for_arrival();
    std::vector<std::shared_ptr<WaitingSink>> waiting;
    for (int i = 0; i < 3; ++i) waiting.push_back(submit(ask(numbered_prompt(4, i), 3)));
    const auto refused =
        engine_->submit(ask(numbered_prompt(4, 1), 3), std::make_shared<WaitingSink>());
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kQueueFull);
    gate.open();
    for (const auto& sink : waiting) EXPECT_TRUE(sink->wait().done);
    EXPECT_TRUE(running->wait().done);
  }
}

TEST_F(FakeEngineTest, LengthsUpToLimitAreServedAndBeyondRefused) {
  options_.max_model_len = 64;
  options_.memory.pool_bytes = 4 * kFakeBlockBytes;
  start();
  auto open = ask(numbered_prompt(63, 1), 1);
  open.sampling.max_tokens.reset();
  const Answer one = run(open);
  ASSERT_TRUE(one.done);
  EXPECT_EQ(one.first().tokens.size(), 1);
  EXPECT_EQ(one.first().finish->reason, FinishReason::kLength);
  EXPECT_EQ(tokens_of(ask(numbered_prompt(10, 1), 54)).size(), 54);
  for (const auto& request : {ask(numbered_prompt(10, 1), 55), ask(numbered_prompt(64, 1), 1),
                              ask(numbered_prompt(300, 1), 1)}) {
    const Answer answer = run(request);
    ASSERT_TRUE(answer.error);
    EXPECT_EQ(answer.error->code, ErrorCode::kInvalidArgument);
    EXPECT_NE(answer.error->message.find("maximum context length is 64 tokens"), std::string::npos);
  }
  EXPECT_EQ(engine_->stats().waiting, 0);
}

TEST_F(FakeEngineTest, InvalidRequestsAreRefusedOnSubmit) {
  start();
  auto request = ask(std::vector<int32_t>{1, 264}, 3);
  EXPECT_EQ(engine_->submit(request, nullptr).error().code, ErrorCode::kInvalidArgument);
  request = ask(numbered_prompt(3, 1), 3);
  request.sampling.logit_bias = {{264, 1}};
  EXPECT_EQ(engine_->submit(request, nullptr).error().param, "logit_bias");
  request = ask(numbered_prompt(3, 1), 3);
  request.adapters = {{"nobody", 1}};
  EXPECT_EQ(engine_->submit(request, nullptr).error().code, ErrorCode::kNotFound);
  request = ask(ChatPrompt{{{"user", {MediaRef{}}}}, {}}, 3);
  EXPECT_NE(engine_->submit(request, nullptr).error().message.find("does not support images"),
            std::string::npos);
  EXPECT_EQ(*engine_->detokenize({}), "");
}

TEST_F(FakeEngineTest, DrainWaitsForRunningAndRefusesNew) {
  start();
  Gate gate;
  const auto running = gated_sink(gate);
  submit(ask(numbered_prompt(4, 1), 30), running);
  gate.wait_for_arrival();
  const auto waiting = submit(ask(numbered_prompt(9, 1), 30));
  std::promise<int> calls;
  engine_->drain([&] { calls.set_value(running->calls() + waiting->calls()); });
  EXPECT_EQ(
      engine_->submit(ask(numbered_prompt(4, 1), 1), std::make_shared<WaitingSink>()).error().code,
      ErrorCode::kUnavailable);
  gate.open();
  const int total = calls.get_future().get();
  EXPECT_TRUE(running->wait().done && waiting->wait().done);
  EXPECT_EQ(total, running->calls() + waiting->calls());
  drain();  // no requests are left
}

TEST_F(FakeEngineTest, TheDestructorEndsEveryRequestOnce) {
  int cancelled = 0;
  for (int round = 0; round < 30; ++round) {
    start();
    std::vector<std::shared_ptr<WaitingSink>> sinks;
    for (int i = 0; i < 9; ++i) sinks.push_back(submit(ask(numbered_prompt(5 + i, i), 400)));
    std::promise<void> drained, loaded;
    if (round % 2 == 0) sinks[round % 9]->wait_for_tokens(1);
    engine_->drain([&] { drained.set_value(); });
    engine_->load_adapter({.name = "a", .path = "/nowhere"}, [&](const Result<AdapterCard>& card) {
      EXPECT_FALSE(card.ok());
      loaded.set_value();
    });
    engine_.reset();
    for (const auto& sink : sinks) {
      const Answer answer = sink->wait();
      if (!answer.error) continue;  // it finished first
      EXPECT_EQ(answer.error->code, ErrorCode::kCancelled);
      ++cancelled;
    }
    drained.get_future().wait();
    loaded.get_future().wait();
  }
  EXPECT_GT(cancelled, 0);
}

class Thrower final : public StepObserver {
 public:
  void on_step(const StepRecord&) override { throw std::runtime_error("observer's fault"); }
};

TEST_F(FakeEngineTest, InternalErrorFailsAllAndIsReported) {
  start();
  Thrower thrower;
  engine_->set_observer(&thrower);
  const Answer answer = run(ask(numbered_prompt(4, 1), 30));
  ASSERT_TRUE(answer.error);
  EXPECT_EQ(answer.error->code, ErrorCode::kInternal);
  EXPECT_FALSE(engine_->healthy());
  EXPECT_EQ(
      engine_->submit(ask(numbered_prompt(4, 1), 1), std::make_shared<WaitingSink>()).error().code,
      ErrorCode::kUnavailable);
  drain();
}

TEST_F(FakeEngineTest, LostModelEndsEngine) {
  bool lost = false;
  on_step_ = [&](const scheduler::StepPlan&) -> Status {
    if (lost) throw std::runtime_error("the device fails");
    return {};
  };
  start();
  EXPECT_TRUE(run(ask(numbered_prompt(4, 1), 3)).done);
  EXPECT_TRUE(engine_->healthy());
  lost = true;
  const auto first = submit(ask(numbered_prompt(4, 1), 30));
  EXPECT_EQ(first->wait().error->code, ErrorCode::kInternal);
  EXPECT_FALSE(engine_->healthy()) << "/health is 503";
  lost = false;
  EXPECT_FALSE(engine_->submit(ask(numbered_prompt(4, 1), 1), std::make_shared<WaitingSink>()).ok())
      << "for good";
}

}  // namespace
}  // namespace valora::serving
