// The endpoints for chats, completions and classifications.
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;
using ::testing::HasSubstr;

TEST_F(Handlers, ChatReturnsACompleteAnswer) {
  const Json answer = chat("hello big world", R"("model":"fake")")->json();
  EXPECT_EQ(answer["id"], "chatcmpl-ID");
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["model"], "fake");
  const Json& choice = answer["choices"][0];
  EXPECT_EQ(choice["index"], 0);
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(choice["message"]["content"], "hello big world");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["stop_reason"], 7);
  EXPECT_TRUE(choice["logprobs"].is_null());
  EXPECT_EQ(answer["usage"],
            Json::parse(R"({"prompt_tokens":3,"total_tokens":6,"completion_tokens":3,
                            "prompt_tokens_details":{"cached_tokens":2}})"));
}

TEST_F(Handlers, BodyIsReleasedOncePromptIsPrepared) {
  auto exchange = begin("POST", "/v1/chat/completions", chat_body("!hang", R"("stream":true)"));
  EXPECT_FALSE(exchange->body_released);
  exchange->run_until_streaming();
  EXPECT_TRUE(exchange->body_released);
  exchange->leave();
}

TEST_F(Handlers, ModelFieldCanBeRewrittenByRouters) {
  EXPECT_THAT(chat("x", R"("model":"lens")")->response.body, HasSubstr(R"("model":"lens")"));
  EXPECT_THAT(chat("x", R"("model":"lens","stream":true)")->stream, HasSubstr(R"("model":"lens")"));
}

TEST_F(Handlers, ModelNamesResolveToAdapters) {
  const auto content = [&](const std::string& fields) {
    return chat("!echo-adapters", fields)->json()["choices"][0]["message"]["content"];
  };
  EXPECT_EQ(content(""), "");
  EXPECT_EQ(content(R"("model":"fake")"), "");
  EXPECT_EQ(content(R"("model":"lens")"), " lens*1");
  EXPECT_EQ(content(R"("model":"fake:birds")"), " birds*1");
  EXPECT_EQ(content(R"("lora":[{"name":"lens","scale":0.5},{"id":"birds"}])"), " lens*0.5 birds*1");
  EXPECT_EQ(content(R"("model":"lens","lora":[{"name":"lens","scale":2},{"name":"birds"}])"),
            " lens*2 birds*1");
}

TEST_F(Handlers, UnknownModelIs404) {
  for (const std::string model : {"nope", "fake:nope", "../lens"}) {
    const auto exchange = chat("x", R"("model":")" + model + "\"");
    EXPECT_EQ(exchange->response.status, 404);
    EXPECT_EQ(exchange->json()["error"]["message"], "The model `" + model + "` does not exist.");
    EXPECT_EQ(exchange->json()["error"]["type"], "NotFoundError");
    EXPECT_EQ(exchange->json()["error"]["param"], "model");
    EXPECT_EQ(exchange->json()["error"]["code"], 404);
  }
}

TEST_F(Handlers, AnyServedNameSelectsTheModel) {
  options_.served_model_names = {"one", "two"};
  EXPECT_EQ(chat("x")->json()["model"], "one");
  EXPECT_EQ(chat("x", R"("model":"two")")->json()["model"], "one") << "as in vLLM";
  EXPECT_EQ(chat("x", R"("model":"two:lens")")->response.status, 200);
  EXPECT_EQ(chat("x", R"("model":"fake")")->response.status, 404);
}

TEST_F(Handlers, LogprobsHaveExactBytesAndValidText) {
  const Json answer = chat("!bytes", R"("logprobs":true,"top_logprobs":2)")->json();
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "\xE2\x82\xAC euro");
  const Json& content = answer["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 3u);
  EXPECT_EQ(content[0]["token"], "\xEF\xBF\xBD");
  EXPECT_EQ(content[0]["bytes"], Json({0xE2, 0x82}));
  EXPECT_EQ(content[1]["bytes"], Json({0xAC}));
  EXPECT_EQ(content[2]["token"], " euro");
  EXPECT_EQ(content[2]["logprob"], -0.5);
  ASSERT_EQ(content[2]["top_logprobs"].size(), 2u);
  EXPECT_EQ(content[2]["top_logprobs"][1]["token"], "alt1");
}

TEST_F(Handlers, StreamBeginsWithTheFirstTokenAndEndsWithDone) {
  const auto exchange = chat("hello big world", R"("stream":true)");
  EXPECT_TRUE(exchange->streaming);
  EXPECT_THAT(exchange->response.content_type, HasSubstr("text/event-stream"));
  const auto events = exchange->events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["object"], "chat.completion.chunk");
  EXPECT_EQ(events[0]["choices"][0]["delta"], Json({{"role", "assistant"}, {"content", "hello"}}));
  EXPECT_TRUE(events[0]["choices"][0]["finish_reason"].is_null());
  EXPECT_EQ(events[1]["choices"][0]["delta"], Json({{"content", " big"}}));
  EXPECT_EQ(events[2]["choices"][0]["finish_reason"], "stop");
  for (const Json& event : events) EXPECT_FALSE(event.contains("usage"));
  EXPECT_TRUE(exchange->stream.ends_with("\n\ndata: [DONE]\n\n"));
}

TEST_F(Handlers, StreamedUsageIsSentOnlyOnRequest) {
  const auto with_usage =
      chat("a b", R"("stream":true,"stream_options":{"include_usage":true})")->events();
  ASSERT_EQ(with_usage.size(), 3u);
  EXPECT_FALSE(with_usage[0].contains("usage"));
  EXPECT_TRUE(with_usage[2]["choices"].empty());
  EXPECT_EQ(with_usage[2]["usage"]["total_tokens"], 4);
  const auto continuous =
      chat("a b",
           R"("stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true})")
          ->events();
  EXPECT_EQ(continuous[0]["usage"]["completion_tokens"], 1);
  EXPECT_EQ(continuous[0]["usage"]["prompt_tokens"], 2);
  EXPECT_EQ(continuous[1]["usage"]["completion_tokens"], 2);
}

TEST_F(Handlers, StreamedChoicesInterleaveByIndex) {
  const auto events = chat("a b", R"("stream":true,"n":3)")->events();
  std::vector<std::string> texts(3);
  std::vector<int> roles(3);
  for (const Json& event : events) {
    const Json& choice = event["choices"][0];
    const int index = choice["index"];
    roles.at(index) += choice["delta"].contains("role");
    texts.at(index) += choice["delta"]["content"].get<std::string>();
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"a b", "a b", "a b"}));
  EXPECT_EQ(roles, (std::vector<int>{1, 1, 1}));
}

TEST_F(Handlers, ErrorsBeforeTheFirstTokenKeepTheirStatus) {
  const auto exchange = chat("!fail-now", R"("stream":true)");
  EXPECT_FALSE(exchange->streaming);
  EXPECT_EQ(exchange->response.status, 400);
  EXPECT_EQ(exchange->json()["error"]["message"], "this prompt fails");
}

TEST_F(Handlers, MidStreamErrorIsAnEventBeforeDone) {
  const auto exchange = chat("!fail with this", R"("stream":true)");
  const auto events = exchange->events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2]["error"]["code"], 400);
  EXPECT_TRUE(exchange->stream.ends_with("data: [DONE]\n\n"));
}

TEST_F(Handlers, ErrorDuringGenerationReplacesTheWholeAnswer) {
  const auto exchange = chat("!fail with this");
  EXPECT_EQ(exchange->response.status, 400);
  EXPECT_EQ(exchange->json()["error"]["type"], "BadRequestError");
}

TEST_F(Handlers, DisconnectCancelsAllRequestsOfTheClient) {
  auto exchange = begin("POST", "/v1/chat/completions", chat_body("!hang", R"("stream":true)"));
  exchange->run_until_streaming();
  exchange->leave();
  engine_.wait_for_cancelled(1);
  EXPECT_THAT(
      service_->metrics.text(),
      HasSubstr(
          R"(vllm:request_success_total{engine="0",finished_reason="abort",model_name="fake"} 1)"));
}

TEST_F(Handlers, UnsupportedFieldIsAnInvalidRequestNamingIt) {
  for (const auto& [fields, param] :
       {std::pair{R"("tools":[{"type":"web_search"}])", "tools"},
        std::pair{R"("response_format":{"type":"table"})", "response_format"}}) {
    const auto refused = chat("x", fields);
    EXPECT_EQ(refused->response.status, 400);
    EXPECT_EQ(refused->json()["error"]["type"], "invalid_request_error");
    EXPECT_EQ(refused->json()["error"]["param"], param);
    EXPECT_EQ(refused->json()["error"]["code"], 400);
  }
}

TEST_F(Handlers, EchoedPromptPrecedesTheCompletion) {
  const std::string body = R"({"prompt":["a b","c"],"echo":true,"n":2)";
  const Json answer = call("POST", "/v1/completions", body + "}")->json();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(answer["choices"][i]["text"], i < 2 ? "a ba b" : "cc");
  std::string text;
  for (const Json& event : call("POST", "/v1/completions", body + R"(,"stream":true})")->events())
    if (event["choices"][0]["index"] == 1) text += event["choices"][0]["text"];
  EXPECT_EQ(text, "a ba b");
}

TEST_F(Handlers, TokensAreReturnedAsIdsOnRequest) {
  const Json answer =
      chat("a", R"("logprobs":true,"top_logprobs":2,"return_tokens_as_token_ids":true)")->json();
  const Json& token = answer["choices"][0]["logprobs"]["content"][0];
  EXPECT_THAT(token["token"].get<std::string>(), ::testing::StartsWith("token_id:"));
  EXPECT_EQ(token["top_logprobs"][1]["token"], "token_id:1");
}

TEST_F(Handlers, CompletionChoicesAreNumberedAcrossPrompts) {
  const Json answer =
      call("POST", "/v1/completions", R"({"prompt":["a b","c"],"n":2,"logprobs":1,"max_tokens":1})")
          ->json();
  EXPECT_EQ(answer["id"], "cmpl-ID");
  EXPECT_EQ(answer["object"], "text_completion");
  ASSERT_EQ(answer["choices"].size(), 4u);
  EXPECT_EQ(answer["choices"][1]["index"], 1);
  EXPECT_EQ(answer["choices"][1]["text"], "a");
  EXPECT_EQ(answer["choices"][1]["finish_reason"], "length");
  EXPECT_EQ(answer["choices"][2]["text"], "c");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 4);
  EXPECT_EQ(
      answer["choices"][0]["logprobs"],
      Json::parse(
          R"({"text_offset":[0],"token_logprobs":[-0.5],"tokens":["a"],"top_logprobs":[{"a":-0.5}]})"));
}

TEST_F(Handlers, CompletionStreamsCountTextOffsets) {
  const auto events =
      call("POST", "/v1/completions", R"({"prompt":"ab cd e","stream":true,"logprobs":0})")
          ->events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["choices"][0]["text"], "ab");
  EXPECT_EQ(events[1]["choices"][0]["logprobs"]["text_offset"], Json({2}));
  EXPECT_EQ(events[2]["choices"][0]["logprobs"]["text_offset"], Json({5}));
}

TEST_F(Handlers, TokenIdsAreReturnedOnRequest) {
  const Json answer = chat("a b", R"("return_token_ids":true)")->json();
  EXPECT_EQ(answer["choices"][0]["token_ids"].size(), 2u);
  EXPECT_EQ(answer["prompt_token_ids"], Json({0, 1}));
}

TEST_F(Handlers, FirstChatEventHasPromptTokenIds) {
  const auto events = chat("a b c", R"("return_token_ids":true,"stream":true,"n":2)")->events();
  EXPECT_EQ(events.at(0)["prompt_token_ids"], Json({0, 1, 2}));
  for (size_t i = 1; i < events.size(); ++i) EXPECT_FALSE(events[i].contains("prompt_token_ids"));
  for (const Json& event : chat("a b c", R"("stream":true)")->events())
    EXPECT_FALSE(event.contains("prompt_token_ids"));
  const auto label =
      chat("a b", R"("model":"birds","head":"species","return_token_ids":true,"stream":true)");
  EXPECT_EQ(label->events().at(0)["prompt_token_ids"], Json({0, 1}));
}

TEST_F(Handlers, FirstEventOfEachCompletionChoiceHasPromptTokenIds) {
  const auto events = call("POST", "/v1/completions",
                           R"({"prompt":["a b","c d e"],"n":2,"return_token_ids":true,
                               "stream":true})")
                          ->events();
  std::vector<int> seen(4);
  for (const Json& event : events) {
    const Json& choice = event["choices"][0];
    const int index = choice["index"];
    ASSERT_EQ(choice.contains("prompt_token_ids"), seen.at(index)++ == 0);
    if (seen[index] == 1) {
      EXPECT_EQ(choice["prompt_token_ids"], index < 2 ? Json({0, 1}) : Json({0, 1, 2}));
    }
    EXPECT_FALSE(event.contains("prompt_token_ids"));
  }
  EXPECT_THAT(seen, ::testing::ElementsAre(2, 2, 3, 3));
}

TEST_F(Handlers, ClassifyReturnsProbabilitiesOrLogits) {
  const Json answer = call("POST", "/classify", R"({"model":"birds","input":["x","y"]})")->json();
  EXPECT_EQ(answer["id"], "classify-ID");
  EXPECT_EQ(answer["object"], "list");
  EXPECT_EQ(answer["model"], "birds");
  ASSERT_EQ(answer["data"].size(), 2u);
  EXPECT_EQ(answer["data"][1]["index"], 1);
  EXPECT_EQ(answer["data"][1]["label"], "dog");
  EXPECT_EQ(answer["data"][1]["probs"], Json({0.125, 0.625, 0.25}));
  EXPECT_EQ(answer["data"][1]["num_classes"], 3);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 2);
  const Json raw =
      call("POST", "/v1/classify",
           R"({"model":"birds","messages":[{"role":"user","content":"x"}],"use_activation":false})")
          ->json();
  EXPECT_EQ(raw["data"][0]["probs"], Json({0.0, 2.0, 1.0}));
  EXPECT_EQ(engine_.requests().back().task, Task::kClassify);
}

}  // namespace
}  // namespace valora::server
