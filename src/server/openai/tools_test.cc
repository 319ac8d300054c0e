#include "server/openai/tools.h"

#include <gtest/gtest.h>

namespace valora::server {
namespace {

Result<ToolRequest> tools_of(const std::string& fields) {
  const std::string text = "{" + fields + "}";
  return parse_tools(Json::parse(text), text);
}

const std::string kToolList =
    R"("tools":[{"type":"function","function":{"name":"look","description":"d","parameters":
      {"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"string"}}}}},
    {"type":"function","function":{"name":"stop.now","strict":true}}])";

TEST(ParseTools, KeepsTheOrderOfKeys) {
  const auto tools = tools_of(kToolList);
  ASSERT_TRUE(tools.ok()) << tools.error().message;
  EXPECT_EQ(tools->choice, ToolChoice::kAuto);
  ASSERT_EQ(tools->callable.size(), 2u);
  EXPECT_EQ(tools->callable[0].parameters,
            R"({"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"string"}}})");
  EXPECT_FALSE(tools->callable[0].strict);
  EXPECT_EQ(tools->callable[1].name, "stop.now");
  EXPECT_EQ(tools->callable[1].parameters, kNoParameters) << "a function without parameters";
  EXPECT_TRUE(tools->callable[1].strict);
  EXPECT_EQ(tools->json.find(R"([{"type":"function","function":{"name":"look","description":"d")"),
            0u);
}

TEST(ParseTools, AnEmptySchemaAllowsAnyObject) {
  const auto parameters = [](const std::string& given) {
    return tools_of(R"("tools":[{"type":"function","function":{"name":"f")" + given + "}}]")
        ->callable.at(0)
        .parameters;
  };
  EXPECT_EQ(parameters(R"(,"parameters":{})"), "");
  EXPECT_EQ(parameters(R"(,"parameters":null)"), kNoParameters);
}

TEST(ParseTools, ReadsTheChoice) {
  const auto choice = [](const std::string& given) {
    const auto tools = tools_of(kToolList + R"(,"tool_choice":)" + given);
    EXPECT_TRUE(tools.ok()) << tools.error().message;
    return std::pair(tools->choice, tools->callable.size());
  };
  EXPECT_EQ(choice("null"), std::pair(ToolChoice::kAuto, size_t{2}));
  EXPECT_EQ(choice(R"("auto")"), std::pair(ToolChoice::kAuto, size_t{2}));
  EXPECT_EQ(choice(R"("none")").first, ToolChoice::kNone);
  EXPECT_EQ(choice(R"("required")"), std::pair(ToolChoice::kRequired, size_t{2}));
  EXPECT_EQ(choice(R"({"type":"function","function":{"name":"look"}})"),
            std::pair(ToolChoice::kRequired, size_t{1}));
  EXPECT_EQ(choice(R"({"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":
                       [{"type":"function","function":{"name":"stop.now"}}]}})"),
            std::pair(ToolChoice::kAuto, size_t{1}));
  EXPECT_EQ(tools_of(R"("tools":[])")->choice, ToolChoice::kNone);
  EXPECT_EQ(tools_of(R"("tool_choice":"auto")")->choice, ToolChoice::kNone);
  EXPECT_FALSE(tools_of(kToolList + R"(,"parallel_tool_calls":false)")->parallel);
}

// The prompt describes all tools whatever the choice, so that a conversation's prefix stays the
// same.
TEST(ParseTools, ChoiceDoesNotChangeThePrompt) {
  const std::string all = tools_of(kToolList)->json;
  EXPECT_EQ(tools_of(kToolList + R"(,"tool_choice":"none")")->json, all);
  EXPECT_EQ(tools_of(kToolList + R"(,"tool_choice":{"type":"function","function":{"name":"look"}})")
                ->json,
            all);
}

TEST(ParseTools, NamesTheInvalidField) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("tools":{"a":1})", "tools"},
      {R"("tools":[5])", "tools"},
      {R"("tools":[{"function":{"name":"f"}}])", "tools"},
      {R"("tools":[{"type":"function"}])", "tools"},
      {R"("tools":[{"type":"function","function":{"name":""}}])", "tools"},
      {R"("tools":[{"type":"function","function":{"name":"a b"}}])", "tools"},
      {R"("tools":[{"type":"function","function":{"name":"f\"}"}}])", "tools"},
      {R"("tools":[{"type":"function","function":{"name":"f","parameters":[]}}])", "tools"},
      {R"("tools":[{"type":"function","function":{"name":"f","strict":1}}])", "tools"},
      {kToolList.substr(0, kToolList.size() - 1) +
           R"(,{"type":"function","function":{"name":"look"}}])",
       "tools"},
      {kToolList + R"(,"tool_choice":"sometimes")", "tool_choice"},
      {kToolList + R"(,"tool_choice":{"type":"function","function":{"name":"other"}})",
       "tool_choice"},
      {kToolList +
           R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}})",
       "tool_choice"},
      {R"("tool_choice":"required")", "tool_choice"},
      {kToolList + R"(,"parallel_tool_calls":"no")", "parallel_tool_calls"}};
  for (const auto& [fields, param] : cases) {
    const auto tools = tools_of(fields);
    ASSERT_FALSE(tools.ok()) << fields;
    EXPECT_EQ(tools.error().code, ErrorCode::kInvalidArgument) << fields;
    EXPECT_EQ(tools.error().param, param) << fields;
  }
  EXPECT_EQ(tools_of(R"("tools":[{"type":"web_search"}])").error().code,
            ErrorCode::kNotImplemented);
}

}  // namespace
}  // namespace valora::server
