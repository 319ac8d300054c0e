// Chats and responses whose answers begin with a thought. The fake engine repeats the last message,
// whose words with "~" are the thought.
#include "base/json/json.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;

class Thoughts : public Handlers {
 protected:
  GenerateRequest asked() { return engine_.requests().back(); }
  ChatPrompt prompt() { return std::get<ChatPrompt>(asked().prompt); }
  std::shared_ptr<testing::FakeExchange> respond(const std::string& fields = {}) {
    return call("POST", "/v1/responses", R"({"input":"~hm ~so yes no")" + fields + "}");
  }
};

TEST_F(Thoughts, AreApartFromTheContent) {
  const Json answer = chat("~hm ~so yes no", R"("n":2)")->json();
  for (const Json& choice : answer["choices"]) {
    EXPECT_EQ(choice["message"]["reasoning"], "~hm ~so");
    EXPECT_EQ(choice["message"]["reasoning_content"], "~hm ~so");
    EXPECT_EQ(choice["message"]["content"], " yes no");
  }
  EXPECT_EQ(answer["usage"]["completion_tokens"], 8);
  EXPECT_EQ(answer["usage"]["completion_tokens_details"], Json({{"reasoning_tokens", 4}}));
  EXPECT_TRUE(asked().thought.apart);
  EXPECT_EQ(asked().thought.budget, std::nullopt);
}

TEST_F(Thoughts, AreNotMentionedWhereThereAreNone) {
  const Json answer = chat("yes no")->json();
  EXPECT_FALSE(answer["choices"][0]["message"].contains("reasoning"));
  EXPECT_FALSE(answer["choices"][0]["message"].contains("reasoning_content"));
  EXPECT_FALSE(answer["usage"].contains("completion_tokens_details"));
}

TEST_F(Thoughts, LeaveNullWithoutAnAnswer) {
  const Json message = chat("~hm ~so")->json()["choices"][0]["message"];
  EXPECT_TRUE(message["content"].is_null());
  EXPECT_EQ(message["reasoning"], "~hm ~so");
}

TEST_F(Thoughts, AreStreamedApart) {
  std::string thought, content;
  Json usage;
  for (const Json& event :
       chat("~hm ~so yes no", R"("stream":true,"stream_options":{"include_usage":true})")
           ->events()) {
    if (event.contains("usage") && !event["usage"].is_null()) usage = event["usage"];
    for (const Json& choice : event["choices"]) {
      const Json& delta = choice["delta"];
      EXPECT_EQ(delta.contains("reasoning"), delta.contains("reasoning_content"));
      EXPECT_NE(delta.contains("reasoning"), delta.contains("content"));
      thought += delta.value("reasoning_content", "");
      content += delta.value("content", "");
    }
  }
  EXPECT_EQ(thought, "~hm ~so");
  EXPECT_EQ(content, " yes no");
  EXPECT_EQ(usage["completion_tokens_details"]["reasoning_tokens"], 2);
}

TEST_F(Thoughts, CanBeLeftOut) {
  const Json answer = chat("~hm yes", R"("include_reasoning":false)")->json();
  EXPECT_FALSE(answer["choices"][0]["message"].contains("reasoning"));
  EXPECT_EQ(answer["choices"][0]["message"]["content"], " yes");
  EXPECT_EQ(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 1);
  chat("a", R"("separate_reasoning":false)");
  EXPECT_FALSE(asked().thought.apart);
}

TEST_F(Thoughts, FieldsReachTheEngine) {
  chat("a", R"("thinking_token_budget":5,"reasoning_effort":"xhigh")");
  EXPECT_EQ(asked().thought.budget, 5);
  EXPECT_EQ(prompt().template_hints,
            Json({{"reasoning_effort", "xhigh"}, {"enable_thinking", true}}));
  chat("a", R"("thinking_token_budget":-1,"reasoning_effort":"none")");
  EXPECT_EQ(asked().thought.budget, std::nullopt);
  EXPECT_EQ(prompt().template_hints["enable_thinking"], false);
  chat("a", R"("reasoning_effort":"low","enable_thinking":false)");
  EXPECT_EQ(prompt().template_hints["enable_thinking"], false);
  EXPECT_TRUE(prompt().template_variables.is_null());
}

TEST_F(Thoughts, ResponsesHaveThemAsItems) {
  const Json answer = respond()->json();
  ASSERT_EQ(answer["output"].size(), 2u);
  const Json& thought = answer["output"][0];
  EXPECT_EQ(thought["type"], "reasoning");
  EXPECT_EQ(thought["id"], "rs_resp_ID_0");
  EXPECT_EQ(thought["status"], "completed");
  EXPECT_EQ(thought["summary"], Json::array());
  EXPECT_EQ(thought["content"], Json::array({{{"type", "reasoning_text"}, {"text", "~hm ~so"}}}));
  EXPECT_EQ(answer["output"][1]["content"][0]["text"], " yes no");
  EXPECT_EQ(answer["usage"]["output_tokens_details"]["reasoning_tokens"], 2);
  const Json cut = respond(R"(,"max_output_tokens":1)")->json();
  EXPECT_EQ(cut["output"].size(), 1u);
  EXPECT_EQ(cut["output"][0]["status"], "incomplete");
}

TEST_F(Thoughts, EffortOfResponsesIsTheChats) {
  respond(R"(,"reasoning":{"effort":"none","summary":"auto"})");
  EXPECT_EQ(prompt().template_hints["enable_thinking"], false);
  for (const char* bad : {R"(,"reasoning":{"effort":"huge"})", R"(,"reasoning":[])",
                          R"(,"reasoning":{"effort":"low"},"reasoning_effort":"high")"}) {
    const auto refused = respond(bad);
    EXPECT_EQ(refused->response.status, 400) << bad;
    EXPECT_EQ(refused->json()["error"]["param"], "reasoning") << bad;
  }
}

TEST_F(Thoughts, CallsAreLookedForAfterThem) {
  const char* const tools =
      R"("tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}])";
  const Json choice =
      chat(R"(~<tool_call>{\"name\":\"look\",\"arguments\":{}}</tool_call> yes)", tools)
          ->json()["choices"][0];
  EXPECT_FALSE(choice["message"].contains("tool_calls"));
  EXPECT_EQ(choice["message"]["content"], " yes");
}

}  // namespace
}  // namespace valora::server
