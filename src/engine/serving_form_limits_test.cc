// Limits on answer forms: their cost and white space.
#include <gmock/gmock.h>

#include "base/json/json.h"
#include "engine/testing/grammar_fixture.h"

namespace valora {
namespace {

using namespace testing;

class FormLimitsTest : public GrammarTest {
 protected:
  static AnswerConstraint schema(const std::string& text) {
    return {AnswerConstraint::Kind::kJsonSchema, text, {}, true, {}};
  }
};

// One choice per step: the other requests rerun their last tokens.
TEST_F(FormLimitsTest, DeferredChoicesGiveSameAnswers) {
  start();
  const AnswerConstraint form = regex("([a-f]{3}[0-9]){9}");
  std::vector<GenerateRequest> requests;
  for (int i = 0; i < 6; ++i)
    requests.push_back(sampled(under(ask(numbered_prompt(14 + i, 40 * i), 40), form), i));
  requests.back().sampling.n = 3;
  requests.push_back(ask(numbered_prompt(9, 5), 40));  // needs no mask
  const auto answers_of = [&] {
    std::vector<std::shared_ptr<WaitingSink>> sinks;
    for (const auto& request : requests) sinks.push_back(submit(request));
    std::vector<std::vector<int32_t>> tokens;
    for (const auto& sink : sinks) {
      const Answer answer = sink->wait();
      EXPECT_TRUE(answer.done) << answer.error->message;
      for (const auto& [index, one] : answer.choices) tokens.push_back(one.tokens);
    }
    return tokens;
  };
  const auto usual = answers_of();
  const uint64_t usual_steps = engine_->stats().steps;
  options_.form_limits.step = 0;
  for (const int batched : {2048, 7}) {
    options_.max_num_batched_tokens = batched;
    start();
    EXPECT_EQ(answers_of(), usual);
    EXPECT_GT(engine_->stats().steps, usual_steps + 100);
    EXPECT_EQ(engine_->check(), "");
  }
}

TEST_F(FormLimitsTest, OtherRequestsContinueWhileChoicesWait) {
  options_.form_limits.step = 0;
  start();
  GenerateRequest many = under(ask(numbered_prompt(10, 3), 30), regex("[a-z]{30}"));
  many.sampling.n = 8;
  const auto slow = submit(many);
  const Answer plain = run(ask(numbered_prompt(12, 9), 30));
  EXPECT_EQ(plain.first().tokens.size(), 30);
  const Answer answer = slow->wait();
  ASSERT_EQ(answer.choices.size(), 8);
  for (const auto& [index, one] : answer.choices) EXPECT_EQ(one.text.size(), 30);
  EXPECT_LT(plain.done->timings.e2e_seconds, answer.done->timings.e2e_seconds);
}

TEST_F(FormLimitsTest, SlowMasksEndTheRequest) {
  options_.form_limits.request = options_.form_limits.token = 0;
  start();
  const auto plain = submit(ask(numbered_prompt(12, 9), 30));
  const Answer answer = run(under(ask_, regex("[a-z]{30}")));
  ASSERT_TRUE(answer.error);
  EXPECT_EQ(answer.error->code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(answer.error->param, "field");
  EXPECT_THAT(answer.error->message, ::testing::HasSubstr("too complex"));
  EXPECT_EQ(plain->wait().first().tokens.size(), 30);
}

TEST_F(FormLimitsTest, SlowFormIsCompiledInSlowLane) {
  options_.form_limits.quick = 0;
  start();
  const AnswerConstraint form = schema(R"({"type": "object", "required": ["a", "b"], "properties":
      {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}, "c": {"enum": [1, 2, 3]}}})");
  for (int i = 0; i < 2; ++i) {
    const Answer answer = run(under(ask_, form));
    ASSERT_TRUE(answer.done) << answer.error->message;
    EXPECT_TRUE(parse_json(answer.first().text, "the answer").ok()) << answer.first().text;
  }
  options_.form_limits.compilation = 0;
  start();
  const Answer refused = run(under(ask_, form));
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->param, "field");
  EXPECT_THAT(refused.error->message, ::testing::HasSubstr("too complex"));
}

TEST_F(FormLimitsTest, RequestOverridesEngineWhiteSpace) {
  options_.json_whitespace = JsonSpacing::kCompact;
  start();
  GenerateRequest request = under(ask_, schema(R"({"type": "array", "items": {"enum": [1]},
                                                   "minItems": 2, "maxItems": 2})"));
  request.sampling.logit_bias = {{'\n', 100}};
  EXPECT_EQ(run(request).first().text, "[1, 1]");
  request.json_whitespace = JsonSpacing::kBounded;
  const std::string bounded = run(request).first().text;
  EXPECT_THAT(bounded, ::testing::StartsWith("[\n"));
  EXPECT_EQ(*parse_json(bounded, "the answer"), Json::array({1, 1})) << bounded;
  request.json_whitespace = JsonSpacing::kFree;
  EXPECT_THAT(run(request).first().text, ::testing::StartsWith("[\n\n\n\n"));
}

}  // namespace
}  // namespace valora
