#include "text/chat/tool_prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/chat/chat_template.h"
#include "text/chat/template_use.h"

namespace valora::text {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

ChatMessage message(const std::string& role, const std::string& text) {
  return {role, {{ChatPart::Kind::kText, text}}};
}

std::string text_of(const ChatMessage& message) {
  std::string text;
  for (const ChatPart& part : message.parts)
    text += part.kind == ChatPart::Kind::kText ? part.text : "[image]";
  return text;
}

const OrderedJson kTools = OrderedJson::parse(
    R"([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}])");

TEST(ToolsInText, AreDescribedInTheSystemMessage) {
  auto turns = with_tools_in_text({message("system", "Be brief."), message("user", "hi")}, kTools);
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_THAT(text_of(turns[0]), StartsWith("Be brief.\n\nYou can call functions."));
  EXPECT_THAT(text_of(turns[0]), HasSubstr(kTools[0].dump()));
  turns = with_tools_in_text({message("user", "hi")}, kTools);
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[0].role, "system");
  EXPECT_THAT(text_of(turns[0]), StartsWith("You can call functions."));
}

TEST(ToolsInText, CallsAndResultsBecomeTurns) {
  ChatMessage calls = message("assistant", "I look.");
  calls.tool_calls = {{"1", "look", {{"z", 1}, {"a", "é"}}}, {"2", "go", OrderedJson::object()}};
  ChatMessage picture{"tool", {{ChatPart::Kind::kImage, {}}}};
  const auto turns = with_tools_in_text(
      {message("user", "hi"), calls, message("tool", "a cat"), picture, message("user", "so?")},
      nullptr);
  ASSERT_EQ(turns.size(), 3u);
  EXPECT_EQ(text_of(turns[1]),
            "I look.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"z\":1,\"a\":\"é\"}}\n"
            "</tool_call>\n<tool_call>\n{\"name\": \"go\", \"arguments\": {}}\n</tool_call>");
  EXPECT_EQ(turns[2].role, "user");
  EXPECT_EQ(text_of(turns[2]),
            "<tool_response>\na cat\n</tool_response>\n<tool_response>\n[image]\n</tool_response>\n"
            "so?");
}

TEST(ToolUse, IsDetectedFromTemplate) {
  EXPECT_FALSE(find_tool_use("{{ messages }} my_tools toolsets").taken);
  EXPECT_TRUE(find_tool_use("{% if tools %}x{% endif %}").taken);
  EXPECT_EQ(find_tool_use("{% if tools %}<tool_call>").style, ToolCallStyle::kHermes);
  EXPECT_EQ(find_tool_use("{% if tools %}Environment: ipython").style, ToolCallStyle::kLlama3Json);
  EXPECT_EQ(find_tool_use("[func_name1(params_name1=params_value1)]").style,
            ToolCallStyle::kPythonic);
}

TEST(ChatTemplateTools, KeepKeyOrderAndPassCallsAsObjects) {
  const auto format = make_chat_template(
      "{% for m in messages %}{{ m.role }}:{{ m.content }}"
      "{% for c in m.tool_calls or [] %}[{{ c.id }} {{ c.function.name }} "
      "{{ c.function.arguments | tojson }}]{% endfor %}"
      "{% if m.tool_call_id is defined %}({{ m.tool_call_id }}){% endif %};{% endfor %}"
      "{{ tools | tojson if tools else 'none' }}",
      "a test", {});
  ASSERT_TRUE(format.ok());
  EXPECT_TRUE((*format)->takes_tools());
  ChatMessage calls{"assistant", {}};
  calls.tool_calls = {{"1", "look", {{"z", 1}, {"a", 2}}}};
  ChatMessage result = message("tool", "r");
  result.tool_call_id = "1";
  EXPECT_EQ(
      (*format)->render({message("user", "hi"), calls, result}, true, nullptr, kTools).value(),
      "user:hi;assistant:[1 look {\"z\": 1, \"a\": 2}];tool:r(1);[{\"type\": \"function\", "
      "\"function\": {\"name\": \"look\", \"parameters\": {\"type\": \"object\"}}}]");
  EXPECT_EQ((*format)->render({message("user", "hi")}, true).value(), "user:hi;none");
}

TEST(RenderContinued, EndsWithTheLastMessagesText) {
  const auto continued = [](const std::string& source, const std::string& text) {
    const auto format = make_chat_template(source, "a test", {});
    const auto result = render_continued(**format, {message("assistant", text)}, nullptr);
    return result.ok() ? *result : "!" + result.error().param;
  };
  const std::string keeps = "<a>{{ messages[0].content }}</a>";
  const std::string strips = "<a>{{ messages[0].content | trim }}</a>";
  EXPECT_EQ(continued(keeps, "one two"), "<a>one two");
  EXPECT_EQ(continued(keeps, " one "), "<a> one ");
  EXPECT_EQ(continued(strips, "one "), "<a>one");
  EXPECT_EQ(continued(keeps, ""), "<a>");
  EXPECT_EQ(continued("<a></a>", "left out"), "!continue_final_message");
  const auto format = make_chatml();
  EXPECT_EQ(
      render_continued(*format, {{"user", {{ChatPart::Kind::kImage, {}}}}}, nullptr).error().param,
      "continue_final_message");
}

}  // namespace
}  // namespace valora::text
