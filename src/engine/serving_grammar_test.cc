// Answers in a required form, on every path a sequence can take through the engine.
#include <gmock/gmock.h>

#include <regex>

#include "base/json/json.h"
#include "engine/testing/grammar_fixture.h"

namespace valora {
namespace {

using namespace testing;
using Kind = AnswerConstraint::Kind;

TEST_F(GrammarTest, AnswersMatchARegexGreedyAndSampled) {
  start();
  const std::string pattern = "[A-Z]{2}-[0-9]{1,3}(x|yz)?";
  for (int i = 0; i < 30; ++i) {
    GenerateRequest request = under(ask(numbered_prompt(5 + i, i), 60), regex(pattern));
    if (i > 0) request = sampled(request, i);
    const Answer answer = run(request);
    ASSERT_TRUE(answer.done) << answer.error->message;
    EXPECT_TRUE(std::regex_match(answer.first().text, std::regex(pattern))) << answer.first().text;
    EXPECT_EQ(answer.first().finish->reason, FinishReason::kStop);
  }
}

TEST_F(GrammarTest, AnswersUnderASchemaAreJsonOfItsForm) {
  start();
  const AnswerConstraint schema{Kind::kJsonSchema,
                                R"({"type": "object", "required": ["a", "b"],
      "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99},
                     "b": {"type": "array", "items": {"enum": ["x", null]}, "maxItems": 3}}})",
                                {},
                                true,
                                {}};
  int finished = 0;
  for (int i = 0; i < 30; ++i) {
    const Answer answer = run(sampled(under(ask(numbered_prompt(9, i), 200), schema), i));
    ASSERT_TRUE(answer.done) << answer.error->message;
    if (answer.first().finish->reason == FinishReason::kLength) continue;
    ++finished;
    const auto json = parse_json(answer.first().text, "the answer");
    ASSERT_TRUE(json.ok()) << answer.first().text;
    EXPECT_TRUE((*json)["a"].is_number_integer() && (*json)["b"].size() <= 3)
        << answer.first().text;
  }
  EXPECT_GT(finished, 20);
}

TEST_F(GrammarTest, PermissiveGrammarChangesNothing) {
  start();
  GenerateRequest plain = ask_;
  plain.sampling.logit_bias = {{259, -100}};  // text only: a grammar allows no special tokens
  for (int id = 0x80; id <= 0xFF; ++id) plain.sampling.logit_bias.emplace_back(id, -100);
  for (int id = 260; id < kVocab; ++id) plain.sampling.logit_bias.emplace_back(id, -100);
  for (const bool random : {false, true}) {
    const GenerateRequest request = random ? sampled(plain, 4) : plain;
    EXPECT_EQ(tokens_of(under(request, regex("[\\s\\S]*"))), tokens_of(request));
  }
}

// Optional tool calls ("tool_choice": "auto"): text is unconstrained until a call begins.
TEST_F(GrammarTest, TagsWithATriggerLeaveOtherTextAlone) {
  start();
  const AnswerConstraint calls{Kind::kStructuralTag,
                               R"({"type": "structural_tag", "format": {"type": "triggered_tags",
      "triggers": ["<>"], "tags": [{"type": "tag", "begin": "<>", "end": "</>",
        "content": {"type": "json_schema", "json_schema": {"type": "boolean"}}}]}})",
                               {},
                               true,
                               {}};
  GenerateRequest plain = ask_;
  plain.sampling.logit_bias = {{259, -100}};
  for (int id = 0x80; id <= 0xFF; ++id) plain.sampling.logit_bias.emplace_back(id, -100);
  for (int id = 260; id < kVocab; ++id) plain.sampling.logit_bias.emplace_back(id, -100);
  EXPECT_EQ(tokens_of(under(sampled(plain, 4), calls)), tokens_of(sampled(plain, 4)));
  GenerateRequest pushed = sampled(plain, 4);
  for (const char c : std::string_view("<>")) pushed.sampling.logit_bias.emplace_back(c, 30);
  int begun = 0;
  for (int seed = 0; seed < 20; ++seed) {
    pushed.sampling.seed = seed;
    const std::string text = run(under(pushed, calls)).first().text;
    const std::string::size_type at = text.find("<>");
    if (at == std::string::npos || text.size() < at + 10) continue;
    ++begun;
    const std::string call = text.substr(at);
    EXPECT_TRUE(call.starts_with("<>true</>") || call.starts_with("<>false</>")) << text;
  }
  EXPECT_GT(begun, 5);
}

TEST_F(GrammarTest, FallbackReplacesUnsupportedSchema) {
  start();
  AnswerConstraint schema{
      Kind::kJsonSchema, R"({"type": "boolean", "not": {"const": true}})", {}, true, {}};
  EXPECT_EQ(run(under(ask_, schema)).error->param, "field");
  schema.fallback = R"({"type": "boolean"})";
  EXPECT_THAT(run(under(ask_, schema)).first().text, ::testing::AnyOf("true", "false"));
  schema.fallback = R"({"type": "boolean", "if": {}})";
  EXPECT_EQ(run(under(ask_, schema)).error->code, ErrorCode::kInvalidArgument);
}

TEST_F(GrammarTest, EachChoiceHasItsOwnMatcher) {
  start();
  GenerateRequest request = sampled(under(ask_, choice({"left", "right", "up"})), 5);
  request.sampling.n = 12;
  const Answer answer = run(request);
  ASSERT_EQ(answer.choices.size(), 12);
  std::set<std::string> seen;
  for (const auto& [index, one] : answer.choices) {
    EXPECT_THAT(one.text, ::testing::AnyOf("left", "right", "up"));
    EXPECT_EQ(one.finish->reason, FinishReason::kStop);
    seen.insert(one.text);
  }
  EXPECT_GT(seen.size(), 1);
}

TEST_F(GrammarTest, CompleteAnswerEndsWithoutEos) {
  start();
  GenerateRequest request = under(ask_, choice({"abc"}));
  request.sampling.ignore_eos = true;
  request.sampling.min_tokens = 40;
  const Answer answer = run(request);
  EXPECT_EQ(answer.first().text, "abc");
  EXPECT_EQ(answer.first().finish->reason, FinishReason::kStop);
  EXPECT_THAT(answer.first().tokens, ::testing::Not(::testing::Contains(kEos)));
}

TEST_F(GrammarTest, EosRequiresCompleteAnswer) {
  start();
  GenerateRequest request = under(ask_, regex("a{5}b*"));
  request.sampling.logit_bias = {{kEos, 100}};
  const Answer answer = run(request);
  EXPECT_EQ(answer.first().text, "aaaaa");
  EXPECT_EQ(answer.first().tokens.back(), kEos);
  request.sampling.min_tokens = 9;
  EXPECT_EQ(run(request).first().text, "aaaaabbbb");
}

TEST_F(GrammarTest, StopsAndLengthsEndAnAnswerEarly) {
  start();
  GenerateRequest request = under(ask_, choice({"abcdefgh"}));
  request.sampling.stop = {"ef"};
  EXPECT_EQ(run(request).first().text, "abcd");
  request.sampling.stop = {};
  request.sampling.stop_token_ids = {'d'};
  EXPECT_EQ(std::get<int32_t>(run(request).first().finish->stop_reason), 'd');
  request.sampling.stop_token_ids = {};
  request.sampling.max_tokens = 3;
  const Answer cut = run(request);
  EXPECT_EQ(cut.first().finish->reason, FinishReason::kLength);
}

TEST_F(GrammarTest, ChunksAndPreemptionChangeNothing) {
  start();
  const AnswerConstraint form = regex("([a-f]{3}[0-9]){17}");
  std::vector<GenerateRequest> requests;
  for (int i = 0; i < 15; ++i)  // enough that some run together, whenever their grammars are ready
    requests.push_back(sampled(under(ask(numbered_prompt(20 + i % 5, 40 * i), 75), form), i));
  options_.max_num_batched_tokens = 7;
  expect_the_same_when_preempted(requests);
}

TEST_F(GrammarTest, BadConstraintFailsOnlyItsRequest) {
  start();
  const auto good = submit(under(ask_, choice({"yes"})));
  const Answer bad = run(under(ask_, regex("(a")));
  ASSERT_TRUE(bad.error);
  EXPECT_EQ(bad.error->code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(bad.error->param, "field");
  EXPECT_EQ(good->wait().first().text, "yes");
}

TEST_F(GrammarTest, TaskHeadsRefuseAConstraint) {
  TempDir adapter;
  write_tiny_adapter(adapter, 5, 3);
  start();
  ASSERT_TRUE(load("labels", adapter.path()).ok());
  GenerateRequest request = under(ask_, choice({"yes"}));
  request.adapters = {{"labels", 1}};
  const auto handle = engine_->submit(request, std::make_shared<WaitingSink>());
  ASSERT_FALSE(handle.ok());
  EXPECT_EQ(handle.error().param, "field");
  request.head = "";
  EXPECT_EQ(run(request).first().text, "yes");
}

}  // namespace
}  // namespace valora
