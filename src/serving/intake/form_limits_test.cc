// Forms that take long to compile, or whose masks do, and the requests beside them.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "grammar/testing/test_grammars.h"
#include "serving/testing/fake_engine_fixture.h"

namespace valora::serving {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using Kind = AnswerConstraint::Kind;

// After it, compilations are usually in the middle; the tests hold at any time.
constexpr auto kUsuallyBegun = std::chrono::milliseconds(50);

class FormLimitsOfEngine : public FakeEngineTest {
 protected:
  static GenerateRequest under(Kind kind, const std::string& text, int tokens) {
    auto request = ask(numbered_prompt(9, 3), tokens);
    request.sampling.ignore_eos = false;
    request.constraint = AnswerConstraint{kind, text, {}, true, "field"};
    return request;
  }
  static GenerateRequest endless(const std::string& title = {}) {
    return under(Kind::kJsonSchema, grammar::endless_schema(title), 5);
  }
  // Compilations take as long as they like: what waits for an endless one never ends.
  void start_without_limits() {
    options_.form_limits.compilation = 1e9;
    start();
  }
};

TEST_F(FormLimitsOfEngine, ACancelledRequestLeavesNothingBehind) {
  for (const double quick : {0.0, 1e9}) {
    options_.form_limits.quick = quick;
    start_without_limits();
    const auto sink = std::make_shared<WaitingSink>();
    const RequestHandle handle = submit(endless(), sink);
    std::this_thread::sleep_for(kUsuallyBegun);
    engine_->cancel(handle);
    wait_until([&] { return engine_->stats().preparing == 0; });
    EXPECT_TRUE(run(under(Kind::kRegex, "[ab]{3}", 5)).done) << "the threads are free again";
    drain();
    EXPECT_EQ(sink->calls(), 0);
    EXPECT_EQ(engine_->check(), "");
  }
}

TEST_F(FormLimitsOfEngine, ADrainWaitsForNoSlowCompilation) {
  options_.form_limits.quick = 0;
  start_without_limits();
  const auto plain = submit(ask(numbered_prompt(9, 3), 200));
  const auto slow = submit(endless()), behind = submit(endless("another"));
  std::this_thread::sleep_for(kUsuallyBegun);
  drain();
  for (const auto& sink : {slow, behind}) {
    const Answer refused = sink->wait();
    ASSERT_TRUE(refused.error);
    EXPECT_EQ(refused.error->code, ErrorCode::kUnavailable);
    EXPECT_THAT(refused.error->message, HasSubstr("shutting down"));
  }
  EXPECT_EQ(plain->wait().first().tokens.size(), 200) << "what runs is answered";
}

TEST_F(FormLimitsOfEngine, TheEndOfTheEngineWaitsForNoCompilation) {
  start_without_limits();
  const auto slow = submit(endless());
  std::this_thread::sleep_for(kUsuallyBegun);
  engine_.reset();
  EXPECT_EQ(slow->wait().error->code, ErrorCode::kCancelled);
}

TEST_F(FormLimitsOfEngine, AFormThatTheContextCannotHoldIsRefusedBeforeItBegins) {
  start();
  const std::string schema = R"({"type": "array", "minItems": 2, "items":
      {"type": "string", "minLength": 9000}})";
  for (const int tokens : {5, 400}) {
    const auto sink = submit(under(Kind::kJsonSchema, schema, tokens));
    const Answer refused = sink->wait();
    ASSERT_TRUE(refused.error);
    EXPECT_EQ(refused.error->code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error->param, "field");
    EXPECT_THAT(refused.error->message, HasSubstr("\"minLength\" at #/items"));
    EXPECT_THAT(refused.error->message, HasSubstr("503 tokens of context"));
    EXPECT_FALSE(refused.started);
  }
  EXPECT_THAT(run(under(Kind::kRegex, "a{9000}", 5)).error->message, HasSubstr("repetitions"));
  EXPECT_TRUE(run(under(Kind::kRegex, "a{200}", 5)).done) << "max_tokens may cut an answer off";
  auto stopped = under(Kind::kJsonSchema, schema, 5);
  stopped.sampling.stop = {"never"};
  EXPECT_TRUE(run(stopped).done) << "it may end where the request says";
}

// Without an allowance, a request may make one choice: it is charged after that.
TEST_F(FormLimitsOfEngine, RequestsOfAGroupShareTheTimeForMasks) {
  options_.form_limits.request = options_.form_limits.token = options_.form_limits.further = 0;
  start();
  const auto tokens_of = [](const Answer& answer) {
    EXPECT_EQ(answer.error->code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(answer.error->param, "field");
    EXPECT_THAT(answer.error->message, HasSubstr("too complex"));
    return answer.choices.empty() ? size_t{0} : answer.first().tokens.size();
  };
  GenerateRequest one = under(Kind::kRegex, "[ab]{9}", 20);
  EXPECT_EQ(tokens_of(run(one)), 1);
  EXPECT_EQ(tokens_of(run(one)), 1);
  one.group = std::make_shared<RequestGroup>();
  EXPECT_EQ(tokens_of(run(one)), 1);
  EXPECT_EQ(tokens_of(run(one)), 0) << "the first of its group took the time";
  EXPECT_EQ(run(ask(numbered_prompt(9, 3), 20)).first().tokens.size(), 20);
}

}  // namespace
}  // namespace valora::serving
