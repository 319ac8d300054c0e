// Thoughts of answers: where they begin and end, forms and stops after them, and their budget.
#include <gmock/gmock.h>

#include <filesystem>

#include "serving/testing/fake_engine_fixture.h"

namespace valora::serving {
namespace {

using namespace testing;
using ::testing::MatchesRegex;
using Kind = AnswerConstraint::Kind;

constexpr int32_t kThinkBegin = 261, kThinkEnd = 262;

AnswerConstraint regex(std::string text) {
  return {.kind = Kind::kRegex, .text = std::move(text), .choices = {}, .param = "response_format"};
}

class ThoughtTest : public FakeEngineTest {
 protected:
  ThoughtTest() {
    folder_.write("chat_template.jinja",
                  "{{ messages[-1].content }}{% if add_generation_prompt %}\n{{ opening if opening "
                  "is defined else '<think>\n' }}{% if enable_thinking is defined and not "
                  "enable_thinking %}</think>\n\n{% endif %}{% endif %}");
  }
  // Gives the marks tokens of their own.
  void add_marks(bool special) {
    Json json = text::tiny_tokenizer_json();
    json["added_tokens"].push_back(text::added_token_json(kThinkBegin, "<think>", special));
    json["added_tokens"].push_back(text::added_token_json(kThinkEnd, "</think>", special));
    folder_.write("tokenizer.json", json.dump());
  }
  static GenerateRequest question(std::optional<int> budget = {}) {
    ChatPrompt chat;
    chat.messages.push_back({"user", {std::string("a")}});
    GenerateRequest request = ask(std::move(chat), 40);
    request.thought = {.apart = true, .budget = budget};
    return request;
  }
  static GenerateRequest with_variables(GenerateRequest request, Json variables) {
    std::get<ChatPrompt>(request.prompt).template_variables = std::move(variables);
    return request;
  }
  static GenerateRequest always(GenerateRequest request, int32_t token) {
    request.sampling.logit_bias = {{token, 100.0f}};
    return request;
  }
  Answer::Choice first_of(const GenerateRequest& request) {
    Answer answer = run(request);
    EXPECT_FALSE(answer.error) << answer.error->message;
    return answer.error ? Answer::Choice() : answer.first();
  }
};

TEST_F(ThoughtTest, FormBeginsAfterTheThought) {
  for (const int marks : {0, 1, 2}) {
    if (marks > 0) add_marks(/*special=*/marks == 2);
    start();
    GenerateRequest request = question(5);
    request.constraint = regex("[a-z]{3}");
    const Answer::Choice choice = first_of(request);
    EXPECT_THAT(choice.text, MatchesRegex("[a-z][a-z][a-z]")) << marks;
    EXPECT_EQ(choice.thought_tokens, 5) << marks;
    EXPECT_EQ(choice.tokens.size(), 5 + (marks > 0 ? 1 : 8) + 3) << marks;
    EXPECT_EQ(choice.finish->reason, FinishReason::kStop);
    EXPECT_EQ(choice.text.find("think"), std::string::npos);
    EXPECT_EQ(choice.thought.find("think"), std::string::npos);
    EXPECT_EQ(run(request).done->usage.thought_tokens, 5);
  }
}

TEST_F(ThoughtTest, ThoughtThatIsNotClosedLeavesNoAnswer) {
  start();
  GenerateRequest request = question();
  request.constraint = regex("[a-z]{3}");
  const Answer::Choice choice = first_of(request);
  EXPECT_EQ(choice.text, "");
  EXPECT_EQ(choice.thought_tokens, 40);
  EXPECT_EQ(choice.finish->reason, FinishReason::kLength);
}

TEST_F(ThoughtTest, FormIsNotEndedBeforeItBegins) {
  start();
  GenerateRequest request = always(question(4), 260);  // the end-of-sequence token
  request.sampling.ignore_eos = false;
  EXPECT_EQ(first_of(request).tokens.size(), 1) << "without a form, the thought may end the answer";
  request.constraint = regex("ab");
  const Answer::Choice choice = first_of(request);
  EXPECT_EQ(choice.text, "ab");
  EXPECT_EQ(choice.thought_tokens, 4);
}

TEST_F(ThoughtTest, BudgetOfNothingClosesAtOnce) {
  add_marks(true);
  start();
  const Answer::Choice choice = first_of(question(0));
  EXPECT_EQ(choice.tokens.front(), kThinkEnd);
  EXPECT_EQ(choice.thought, "");
  EXPECT_EQ(choice.thought_tokens, 0);
  EXPECT_NE(choice.text, "");
}

TEST_F(ThoughtTest, ForcedTokensHaveLogProbabilities) {
  add_marks(true);
  start();
  GenerateRequest request = question(0);
  request.sampling.logprobs = 2;
  request.sampling.allowed_token_ids = {'a', 'b'};
  const Answer::Choice choice = first_of(request);
  EXPECT_EQ(choice.tokens.front(), kThinkEnd);
  EXPECT_EQ(choice.logprobs.front(), 0);
  EXPECT_LT(choice.logprobs[1], 0);
}

TEST_F(ThoughtTest, StopsApplyToTheAnswerAlone) {
  start();
  GenerateRequest request = always(question(6), 'a');
  request.sampling.stop = {"aa"};
  Answer::Choice choice = first_of(request);
  EXPECT_EQ(choice.thought, "aaaaaa");
  EXPECT_EQ(choice.text, "");
  EXPECT_EQ(std::get<std::string>(choice.finish->stop_reason), "aa");
  request.sampling.stop.clear();
  request.sampling.stop_token_ids = {'a'};
  choice = first_of(request);
  EXPECT_EQ(choice.thought, "aaaaaa");
  EXPECT_EQ(std::get<int32_t>(choice.finish->stop_reason), 'a');
  request.thought.apart = false;
  EXPECT_EQ(first_of(request).tokens.size(), 1) << "the thought is part of the text";
}

TEST_F(ThoughtTest, ModelMayOpenTheThoughtBeforeAForm) {
  add_marks(false);
  start();
  GenerateRequest request = with_variables(always(question(3), kThinkBegin), {{"opening", ""}});
  request.constraint = regex("[b-z]{3}");
  const Answer::Choice thinking = first_of(request);
  EXPECT_EQ(thinking.tokens.front(), kThinkBegin);
  EXPECT_EQ(thinking.thought_tokens, 3);
  EXPECT_THAT(thinking.text, MatchesRegex("[b-z][b-z][b-z]"));
  request.sampling.logit_bias = {{kThinkBegin, -100.0f}};
  const Answer::Choice direct = first_of(request);
  EXPECT_EQ(direct.tokens.size(), 3);
  EXPECT_THAT(direct.text, MatchesRegex("[b-z][b-z][b-z]"));
}

TEST_F(ThoughtTest, TemplateMayCloseTheThought) {
  start();
  GenerateRequest request = with_variables(question(3), {{"enable_thinking", false}});
  request.constraint = regex("[a-z]{3}");
  const Answer::Choice choice = first_of(request);
  EXPECT_EQ(choice.tokens.size(), 3);
  EXPECT_EQ(choice.thought, "");
}

TEST_F(ThoughtTest, ServerSetsVariablesThatRequestsLeaveOut) {
  options_.template_variables = R"({"enable_thinking": false})";
  start();
  EXPECT_EQ(first_of(question(3)).thought_tokens, 0);
  EXPECT_EQ(first_of(with_variables(question(3), {{"enable_thinking", true}})).thought_tokens, 3);
  GenerateRequest hinted = question(3);
  std::get<ChatPrompt>(hinted.prompt).template_hints = {{"enable_thinking", true}};
  EXPECT_EQ(first_of(hinted).thought_tokens, 3);
  EXPECT_EQ(first_of(with_variables(hinted, {{"enable_thinking", false}})).thought_tokens, 0);
}

TEST_F(ThoughtTest, BadVariablesOfTheServerAreRefusedAtStart) {
  for (const char* text : {"[]", "{", R"({"messages": []})"}) {
    options_.template_variables = text;
    const auto engine = make_engine();
    ASSERT_FALSE(engine.ok()) << text;
    EXPECT_NE(engine.error().message.find("--default-chat-template-kwargs"), std::string::npos);
  }
  std::filesystem::remove(folder_.path() + "/chat_template.jinja");
  options_.template_variables = R"({"enable_thinking": false})";
  EXPECT_FALSE(make_engine().ok()) << "the built-in format does not know it";
}

TEST_F(ThoughtTest, HintsAreLeftOutWhereNothingReadsThem) {
  std::filesystem::remove(folder_.path() + "/chat_template.jinja");
  start();
  GenerateRequest request = question();
  std::get<ChatPrompt>(request.prompt).template_hints = {{"enable_thinking", false}};
  EXPECT_FALSE(run(request).error);
}

TEST_F(ThoughtTest, ContinuedThoughtGoesOn) {
  start();
  GenerateRequest request = question(2);
  ChatPrompt& chat = std::get<ChatPrompt>(request.prompt);
  chat.messages.push_back({"assistant", {std::string("<think>\nLet me")}});
  chat.continue_final_message = true;
  EXPECT_EQ(first_of(request).thought_tokens, 2);
  chat.messages.back().parts = {std::string("<think>\nLet me</think>It is")};
  EXPECT_EQ(first_of(request).thought_tokens, 0);
}

TEST_F(ThoughtTest, ParserDecidesWhetherAnUnopenedAnswerIsAThought) {
  const auto tokens_with = [&](ReasoningParser parser, const char* opening) {
    options_.reasoning_parser = parser;
    start();
    return first_of(with_variables(question(3), {{"opening", opening}})).thought_tokens;
  };
  EXPECT_EQ(tokens_with(ReasoningParser::kDeepseekR1, ""), 3);
  EXPECT_EQ(tokens_with(ReasoningParser::kQwen3, ""), 0);
  EXPECT_EQ(tokens_with(ReasoningParser::kQwen3, "<think>\n"), 3);
  EXPECT_EQ(tokens_with(ReasoningParser::kMistral, "[THINK]"), 3);
  EXPECT_EQ(tokens_with(ReasoningParser::kMistral, "<think>"), 0);
  EXPECT_EQ(tokens_with(ReasoningParser::kNone, "<think>\n"), 0);
  folder_.write("chat_template.jinja", "{{ messages[-1].content }}{{ opening }}");
  EXPECT_EQ(tokens_with(ReasoningParser::kAuto, "<think>\n"), 0)
      << "the template knows no thoughts";
}

TEST_F(ThoughtTest, FormThatHasTheEndMarkDescribesTheThought) {
  start();
  GenerateRequest request = question();
  request.constraint = regex("[a-c]{2}</think>[d-f]{2}");
  const Answer::Choice choice = first_of(request);
  EXPECT_THAT(choice.thought, MatchesRegex("[abc][abc]"));
  EXPECT_THAT(choice.text, MatchesRegex("[def][def]"));
  request.thought.budget = 1;
  EXPECT_EQ(engine_->submit(request, std::make_shared<WaitingSink>()).error().param,
            "thinking_token_budget");
  request.thought = {};
  EXPECT_THAT(first_of(request).text, MatchesRegex("[abc][abc]</think>[def][def]"));
}

TEST_F(ThoughtTest, EachChoiceHasItsOwn) {
  start();
  GenerateRequest request = question(4);
  request.sampling.n = 3;
  request.sampling.temperature = 1;
  request.sampling.seed = 1;
  request.constraint = regex("[a-z]{2}");
  const Answer answer = run(request);
  ASSERT_EQ(answer.choices.size(), 3);
  for (const auto& [index, choice] : answer.choices) {
    EXPECT_EQ(choice.thought_tokens, 4);
    EXPECT_THAT(choice.text, MatchesRegex("[a-z][a-z]"));
  }
  EXPECT_EQ(answer.done->usage.thought_tokens, 12);
}

TEST_F(ThoughtTest, PromptsThatAreNotConversationsHaveNone) {
  start();
  GenerateRequest request = ask(std::string("<think>\n"), 8);
  request.thought = {.apart = true, .budget = 2};
  EXPECT_EQ(first_of(request).thought_tokens, 0);
}

}  // namespace
}  // namespace valora::serving
