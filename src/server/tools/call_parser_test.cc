#include "server/tools/call_parser.h"

#include <gtest/gtest.h>

namespace valora::server {
namespace {

ToolRequest request(bool parallel = true) {
  ToolRequest tools;
  tools.choice = ToolChoice::kAuto;
  tools.callable = {{.name = "look"}, {.name = "go"}};
  tools.parallel = parallel;
  return tools;
}

// The content, and each call as name(arguments).
struct Sum {
  std::string content;
  std::vector<std::string> calls;
  void add(const AnswerDelta& delta) {
    content += delta.content;
    for (const CallDelta& call : delta.calls) {
      if (call.name) {
        EXPECT_EQ(static_cast<size_t>(call.index), calls.size());
        calls.push_back(*call.name + ":");
      }
      ASSERT_EQ(static_cast<size_t>(call.index) + 1, calls.size());
      calls.back() += call.arguments;
    }
  }
  bool operator==(const Sum&) const = default;
};

Sum sum_of(ToolCallStyle style, const ToolRequest& tools, const std::vector<std::string>& pieces) {
  const auto parser = make_call_parser(style, tools);
  Sum sum;
  for (const std::string& piece : pieces) sum.add(parser->feed(piece));
  sum.add(parser->finish());
  return sum;
}

// Checks that the result is the same however the text is split.
Sum parse(ToolCallStyle style, const std::string& text, bool parallel = true) {
  const ToolRequest tools = request(parallel);
  const Sum whole = sum_of(style, tools, {text});
  std::vector<std::string> characters;
  for (const char c : text) characters.emplace_back(1, c);
  EXPECT_EQ(sum_of(style, tools, characters), whole) << text;
  for (size_t cut = 1; cut < text.size(); ++cut)
    EXPECT_EQ(sum_of(style, tools, {text.substr(0, cut), text.substr(cut)}), whole)
        << text << " cut at " << cut;
  return whole;
}

Sum hermes(const std::string& text, bool parallel = true) {
  return parse(ToolCallStyle::kHermes, text, parallel);
}
Sum llama(const std::string& text) { return parse(ToolCallStyle::kLlama3Json, text); }
Sum python(const std::string& text) { return parse(ToolCallStyle::kPythonic, text); }
using Calls = std::vector<std::string>;

TEST(HermesCalls, AreExtractedFromTheText) {
  const Sum sum = hermes(
      "I look.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": \"}\\\"<tool_call>\", "
      "\"n\": [1, {}]}}\n</tool_call>\n<tool_call>\n{\"arguments\": {}, \"name\": \"go\"}\n"
      "</tool_call>\n");
  EXPECT_EQ(sum.content, "I look.");
  EXPECT_EQ(sum.calls, (Calls{R"(look:{"at": "}\"<tool_call>", "n": [1, {}]})", "go:{}"}));
}

TEST(HermesCalls, TextAfterACallBecomesContent) {
  const Sum sum = hermes("<tool_call>{\"name\":\"go\"}</tool_call> done <b>");
  EXPECT_EQ(sum.content, " done <b>");
  EXPECT_EQ(sum.calls, (Calls{"go:{}"}));
}

TEST(HermesCalls, OnlyTheFirstIsKeptWithoutParallelCalls) {
  const std::string call = "<tool_call>{\"name\":\"go\",\"arguments\":{\"n\":1}}</tool_call>";
  EXPECT_EQ(hermes(call + call, false).calls, (Calls{"go:{\"n\":1}"}));
  EXPECT_EQ(hermes(call + call).calls.size(), 2u);
}

TEST(HermesCalls, InvalidCallStaysText) {
  for (const char* text :
       {"plain text", "a < b and <tool", "<tool_call>", "x <tool_call>\n{\"na", "  \n ",
        "<tool_call>hello</tool_call>", " <tool_call> {\"name\": 5}</tool_call>",
        "<tool_call>{\"name\": \"unknown\", \"arguments\": {\"a\": 1}}</tool_call> y",
        "<tool_call>{}</tool_call>", "<tool_call>{\"name\" \"go\"}</tool_call>",
        "<tool_call>{\"name\": \"go\", \"arguments\": [1]}</tool_call>"}) {
    const Sum sum = hermes(text);
    EXPECT_EQ(sum.content, text);
    EXPECT_TRUE(sum.calls.empty()) << text;
  }
}

TEST(HermesCalls, TagInsideAnInvalidCallStartsANewCall) {
  const Sum sum = hermes(
      "<tool_call>{\"name\": \"no\", \"arguments\": {\"a\": \"\n<tool_call>{\"name\": \"go\"}"
      "</tool_call>\"}}");
  EXPECT_EQ(sum.calls, (Calls{"go:{}"}));
}

TEST(HermesCalls, TruncatedCallIsReportedUpToTheCut) {
  const Sum sum = hermes("<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": \"the s");
  EXPECT_EQ(sum.calls, (Calls{"look:{\"at\": \"the s"}));
  EXPECT_EQ(sum.content, "");
}

TEST(HermesCalls, StringArgumentsAreParsedAsAnObject) {
  EXPECT_EQ(hermes(R"(<tool_call>{"name":"go","arguments":"{\"n\": 2}"}</tool_call>)").calls,
            (Calls{R"(go:{"n": 2})"}));
  EXPECT_EQ(hermes(R"(<tool_call>{"name":"go","arguments":null}</tool_call>)").calls,
            (Calls{"go:{}"}));
}

TEST(HermesCalls, LongWhiteSpaceIsNotBufferedIndefinitely) {
  const std::string space(1000, '\n');
  const auto parser = make_call_parser(ToolCallStyle::kHermes, request());
  EXPECT_GT(parser->feed(space).content.size(), 700u);
  const Sum sum = hermes("a" + std::string(300, ' ') + "<tool_call>{\"name\":\"go\"}</tool_call>");
  EXPECT_EQ(sum.content, "a" + std::string(44, ' '));
}

TEST(Llama3JsonCalls, MustBeTheWholeAnswer) {
  EXPECT_EQ(llama(R"({"name": "look", "parameters": {"at": "x;y"}})").calls,
            (Calls{R"(look:{"at": "x;y"})"}));
  const Sum two = llama(
      R"( <|python_tag|>{"type": "function", "name": "go", "parameters": {}}; {"name": "look"})");
  EXPECT_EQ(two.calls, (Calls{"go:{}", "look:{}"}));
  EXPECT_EQ(two.content, "");
}

TEST(Llama3JsonCalls, InvalidCallStaysText) {
  for (const char* text : {"text {\"name\": \"go\"}", R"({"label": "cat", "score": 0.5})",
                           R"({"name": "cat"} x)", "{\"name", "<|python", "", " ", "[1]"}) {
    const Sum sum = llama(text);
    EXPECT_EQ(sum.content, text);
    EXPECT_TRUE(sum.calls.empty()) << text;
  }
}

TEST(PythonicCalls, AreConvertedToJson) {
  const Sum sum = python(
      "[look(at='it\\'s (\\u00e9', n=[1, 2.5, -3], ok=True, who=None), go(where={\"a\": (1,)},)]");
  EXPECT_EQ(sum.calls, (Calls{R"(look:{"at":"it's (é","n":[1,2.5,-3],"ok":true,"who":null})",
                              R"(go:{"where":{"a":[1]}})"}));
  EXPECT_EQ(sum.content, "");
  EXPECT_EQ(python("[go()]").calls, (Calls{"go:{}"}));
}

TEST(PythonicCalls, InvalidCallStaysText) {
  for (const char* text : {"[1, 2]", "[other(a=1)]", "go(a=1)", "[go(a=b)]", "[go(1)]", "[go(a=1",
                           "[\"go(\"]", "[", " \n"}) {
    const Sum sum = python(text);
    EXPECT_EQ(sum.content, text);
    EXPECT_TRUE(sum.calls.empty()) << text;
  }
}

TEST(PythonicCalls, NestingIsLimited) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  const std::string text = "[go(a=" + deep + ")]";
  const Sum sum = sum_of(ToolCallStyle::kPythonic, request(), {text});
  EXPECT_EQ(sum.content, text);
}

TEST(CallParser, RefusesDeeplyNestedValues) {
  const std::string deep(200'000, '[');
  for (const char* key : {"arguments", "name", "more"}) {
    const std::string text = std::string("<tool_call>{\"") + key + "\": " + deep;
    const Sum sum = sum_of(ToolCallStyle::kHermes, request(), {text + "</tool_call>"});
    EXPECT_TRUE(sum.calls.empty()) << key;
  }
}

}  // namespace
}  // namespace valora::server
