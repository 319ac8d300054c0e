// Forms of answers whose conversations end within a thought.
#include "serving/prompts/thoughts.h"

#include "serving/testing/fake_engine_fixture.h"

namespace valora::serving {
namespace {

using namespace testing;
using Kind = AnswerConstraint::Kind;

AnswerConstraint form(Kind kind, std::string text = {}) {
  return {.kind = kind, .text = std::move(text), .choices = {}, .param = "response_format"};
}

TEST(Thoughts, FormsThatLeaveRoomForAThoughtAllowIt) {
  EXPECT_FALSE(allows_thought(form(Kind::kJsonObject)));
  EXPECT_FALSE(allows_thought(form(Kind::kJsonSchema, R"({"const": "</think>"})")));
  EXPECT_FALSE(allows_thought(form(Kind::kRegex, "[a-z]+")));
  EXPECT_TRUE(allows_thought(form(Kind::kRegex, "[a-z]+</think>[a-z]")));
  EXPECT_TRUE(allows_thought(form(Kind::kEbnf, "root ::= [a]* \"[/THINK]\"")));
  AnswerConstraint choice = form(Kind::kChoice);
  choice.choices = {"a", "b"};
  EXPECT_FALSE(allows_thought(choice));
  choice.choices.emplace_back("no</think>c");
  EXPECT_TRUE(allows_thought(choice));
  EXPECT_TRUE(allows_thought(form(Kind::kLabels)));
  EXPECT_TRUE(allows_thought(form(Kind::kBoxes)));
  const auto tag = [](const std::string& type) {
    return form(Kind::kStructuralTag,
                R"({"type": "structural_tag", "format": {"type": ")" + type + R"("}})");
  };
  EXPECT_TRUE(allows_thought(tag("triggered_tags")));
  EXPECT_FALSE(allows_thought(tag("tags_with_separator")));
  EXPECT_TRUE(allows_thought(form(Kind::kStructuralTag, R"({"triggers": ["<a>"]})")));
  EXPECT_FALSE(allows_thought(form(Kind::kStructuralTag, "{")));
}

class ThoughtTest : public FakeEngineTest {
 protected:
  ThoughtTest() {
    folder_.write("chat_template.jinja",
                  "{{ messages[-1].content }}{% if add_generation_prompt %}\n<think>\n{% if "
                  "enable_thinking is defined and not enable_thinking %}</think>\n\n{% endif %}"
                  "{% endif %}");
  }
  static GenerateRequest question(std::optional<AnswerConstraint> constraint) {
    ChatPrompt chat;
    chat.messages.push_back({"user", {std::string("a")}});
    GenerateRequest request = ask(std::move(chat), 4);
    request.constraint = std::move(constraint);
    return request;
  }
};

TEST_F(ThoughtTest, FormIsNotAppliedToTheThought) {
  start();
  const Answer refused = run(question(form(Kind::kRegex, "[a-z]+")));
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused.error->param, "response_format");
  EXPECT_NE(refused.error->message.find("enable_thinking"), std::string::npos);
  EXPECT_FALSE(run(question({})).error) << "no form";
  GenerateRequest without = question(form(Kind::kRegex, "[a-z]+"));
  std::get<ChatPrompt>(without.prompt).template_variables = {{"enable_thinking", false}};
  EXPECT_FALSE(run(std::move(without)).error) << "the template ends the thought";
  EXPECT_FALSE(run(question(form(Kind::kRegex, "[a-z]*</think>[a-z]+"))).error);
}

}  // namespace
}  // namespace valora::serving
