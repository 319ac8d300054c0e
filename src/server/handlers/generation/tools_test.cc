// Chats with tools. The fake engine repeats the last message, which these tests write as a tool
// call.
#include "base/json/json.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;
using ::testing::HasSubstr;

const char* const kTools =
    R"("tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object",
      "properties":{"at":{"type":"string"}},"required":["at"]}}}])";
const char* const kCall =
    R"(Well. <tool_call>{\"name\": \"look\", \"arguments\": {\"at\": \"a b\"}}</tool_call>)";

class Tools : public Handlers {
 protected:
  Json structural_tag() {
    const auto constraint = engine_.requests().back().constraint;
    EXPECT_TRUE(constraint && constraint->kind == AnswerConstraint::Kind::kStructuralTag);
    EXPECT_EQ(constraint->param, "tools");
    return Json::parse(constraint->text)["format"];
  }
};

TEST_F(Tools, CallsAreExtractedFromTheAnswer) {
  const Json answer = chat(kCall, std::string(kTools) + R"(,"n":2)")->json();
  ASSERT_EQ(answer["choices"].size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const Json& choice = answer["choices"][i];
    EXPECT_EQ(choice["finish_reason"], "tool_calls");
    EXPECT_EQ(choice["message"]["content"], "Well.");
    const Json& calls = choice["message"]["tool_calls"];
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0]["type"], "function");
    EXPECT_EQ(calls[0]["id"], "call-chatcmpl-ID-" + std::to_string(i) + "-0");
    EXPECT_EQ(calls[0]["function"]["name"], "look");
    EXPECT_EQ(calls[0]["function"]["arguments"], R"({"at": "a b"})");
  }
}

TEST_F(Tools, ContentIsNullWithoutText) {
  const std::string call = std::string(kCall).substr(6);
  const Json choice = chat(call, kTools)->json()["choices"][0];
  EXPECT_TRUE(choice["message"]["content"].is_null());
}

TEST_F(Tools, AnswerWithoutCallsIsUnchanged) {
  const Json choice = chat("no call", kTools)->json()["choices"][0];
  EXPECT_EQ(choice["message"]["content"], "no call");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_FALSE(choice["message"].contains("tool_calls"));
}

TEST_F(Tools, ToolChoiceNoneDisablesParsing) {
  const Json choice =
      chat(kCall, std::string(kTools) + R"(,"tool_choice":"none")")->json()["choices"][0];
  EXPECT_THAT(choice["message"]["content"].get<std::string>(), HasSubstr("<tool_call>"));
  EXPECT_FALSE(engine_.requests().back().constraint);
  EXPECT_THAT(std::get<ChatPrompt>(engine_.requests().back().prompt).tools, HasSubstr("look"));
}

TEST_F(Tools, StreamsSendTheNameThenTheArguments) {
  const auto exchange = chat(kCall, std::string(kTools) + R"(,"stream":true)");
  std::string content, arguments, name, reason;
  int names = 0;
  for (const Json& event : exchange->events()) {
    const Json& choice = event["choices"][0];
    if (!choice["finish_reason"].is_null()) reason = choice["finish_reason"];
    content += choice["delta"].value("content", "");
    for (const Json& call : choice["delta"].value("tool_calls", Json::array())) {
      EXPECT_EQ(call["index"], 0);
      if (call["function"].contains("name")) {
        ++names;
        name = call["function"]["name"];
        EXPECT_EQ(call["type"], "function");
        EXPECT_EQ(call["id"], "call-chatcmpl-ID-0-0");
      }
      arguments += call["function"]["arguments"].get<std::string>();
    }
  }
  EXPECT_EQ(content, "Well.");
  EXPECT_EQ(names, 1);
  EXPECT_EQ(name, "look");
  EXPECT_EQ(arguments, R"({"at": "a b"})");
  EXPECT_EQ(reason, "tool_calls");
}

TEST_F(Tools, ToolChoiceConstrainsTheAnswer) {
  chat("x", kTools);
  Json format = structural_tag();
  EXPECT_EQ(format["type"], "triggered_tags");
  EXPECT_EQ(format["triggers"], Json::array({"<tool_call>"}));
  EXPECT_EQ(format["stop_after_first"], false);
  EXPECT_EQ(format["tags"][0]["begin"], "<tool_call>\n{\"name\": \"look\", \"arguments\": ");
  EXPECT_EQ(format["tags"][0]["content"]["json_schema"]["required"], Json::array({"at"}));
  EXPECT_EQ(Json::parse(engine_.requests().back().constraint->fallback)["format"]["tags"][0]
                                                                       ["content"]["json_schema"],
            Json({{"type", "object"}}));
  chat("x", std::string(kTools) + R"(,"tool_choice":"required","parallel_tool_calls":false)");
  format = structural_tag();
  EXPECT_EQ(format["type"], "tags_with_separator");
  EXPECT_EQ(format["at_least_one"], true);
  EXPECT_EQ(format["stop_after_first"], true);
}

TEST_F(Tools, FunctionWithoutParametersTakesNone) {
  const auto schemas = [&](const std::string& text) {
    const Json tag = Json::parse(text)["format"]["tags"];
    return std::pair(tag[0]["content"]["json_schema"], tag[1]["content"]["json_schema"]);
  };
  chat("x", R"("tools":[{"type":"function","function":{"name":"ping"}},
      {"type":"function","function":{"name":"any","parameters":{}}}],"tool_choice":"required")");
  const AnswerConstraint constraint = *engine_.requests().back().constraint;
  for (const std::string& text : {constraint.text, constraint.fallback}) {
    const auto [ping, any] = schemas(text);
    EXPECT_EQ(ping["properties"], Json::object());
    EXPECT_EQ(ping["additionalProperties"], false);
    EXPECT_EQ(any, Json({{"type", "object"}}));
  }
}

TEST_F(Tools, NamedFunctionIsCalledOnceWithoutOtherText) {
  const std::string named =
      std::string(kTools) + R"(,"tool_choice":{"type":"function","function":{"name":"look"}})";
  const auto cut = chat("<tool", named);  // after a token or two
  EXPECT_EQ(structural_tag()["stop_after_first"], true);
  EXPECT_EQ(cut->json()["choices"][0]["message"]["content"], "");
  EXPECT_EQ(chat("<tool", kTools)->json()["choices"][0]["message"]["content"], "<tool");
}

TEST_F(Tools, ParserOptionSelectsTheCallSyntax) {
  options_.tool_call_style = ToolCallStyle::kPythonic;
  const Json choice = chat("[look(at='a b')]", kTools)->json()["choices"][0];
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], R"({"at":"a b"})");
  EXPECT_FALSE(engine_.requests().back().constraint) << "it has no mark at which calls begin";
  chat("x", std::string(kTools) + R"(,"tool_choice":"required")");
  EXPECT_EQ(structural_tag()["tags"][0]["begin"], "{\"name\": \"look\", \"parameters\": ");
}

TEST_F(Tools, RefuseAResponseFormatUnlessChoiceIsNone) {
  const std::string format = R"(,"response_format":{"type":"json_object"})";
  const auto refused = chat("x", kTools + format);
  EXPECT_EQ(refused->response.status, 400);
  EXPECT_EQ(refused->json()["error"]["param"], "response_format");
  EXPECT_EQ(chat("x", kTools + format + R"(,"tool_choice":"none")")->response.status, 200);
}

}  // namespace
}  // namespace valora::server
