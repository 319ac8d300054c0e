// The endpoints over the scripted engine, without sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/temp_dir.h"
#include "server/handlers/adapter_resolver.h"
#include "server/handlers/app.h"
#include "server/testing/echo_script.h"
#include "server/testing/fake_exchange.h"

namespace valora::server {
namespace {

using testing::echo_options;
using testing::FakeExchange;
using ::testing::HasSubstr;
using valora::testing::FakeEngine;

class Handlers : public ::testing::Test {
 protected:
  Handlers() {
    options_.allow_runtime_lora_updating = true;
    engine_.add_adapter("lens");
    engine_.add_adapter("birds", {{"species", {"cat", "dog", "owl"}}});
  }

  std::shared_ptr<FakeExchange> begin(const std::string& method, const std::string& path,
                                      const std::string& body = {}) {
    if (!service_) service_ = std::make_shared<Service>(options_, engine_);
    App app(service_);
    auto exchange = std::make_shared<FakeExchange>();
    HttpRequest request{.id = "ID", .method = method, .path = path, .body = body};
    Headers common;
    if (auto early = app.screen(request, common))
      exchange->respond(std::move(*early));
    else
      app.handle(std::move(request), exchange);
    return exchange;
  }
  std::shared_ptr<FakeExchange> call(const std::string& method, const std::string& path,
                                     const std::string& body = {}) {
    auto exchange = begin(method, path, body);
    exchange->run();
    return exchange;
  }
  std::shared_ptr<FakeExchange> chat(const std::string& text, const std::string& fields = {}) {
    return call("POST", "/v1/chat/completions", chat_body(text, fields));
  }
  static std::string chat_body(const std::string& text, const std::string& fields) {
    return R"({"messages":[{"role":"user","content":")" + text + "\"}]" +
           (fields.empty() ? "" : ",") + fields + "}";
  }

  FakeEngine engine_{echo_options()};
  ServerOptions options_;
  std::shared_ptr<Service> service_;
};

TEST_F(Handlers, ChatAnswersWhole) {
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

TEST_F(Handlers, TheBodyIsReleasedOnceThePromptIsPrepared) {
  auto exchange = begin("POST", "/v1/chat/completions", chat_body("!hang", R"("stream":true)"));
  EXPECT_FALSE(exchange->body_released);
  exchange->run_until_streaming();
  EXPECT_TRUE(exchange->body_released);
  exchange->leave();
}

TEST_F(Handlers, TheModelIsWrittenSoThatRoutersCanRewriteIt) {
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

TEST_F(Handlers, UnknownModelsAre404) {
  for (const std::string model : {"nope", "fake:nope", "../lens"}) {
    const auto exchange = chat("x", R"("model":")" + model + "\"");
    EXPECT_EQ(exchange->response.status, 404);
    EXPECT_EQ(exchange->json()["error"]["message"], "The model `" + model + "` does not exist.");
    EXPECT_EQ(exchange->json()["error"]["type"], "NotFoundError");
    EXPECT_EQ(exchange->json()["error"]["param"], "model");
    EXPECT_EQ(exchange->json()["error"]["code"], 404);
  }
}

TEST_F(Handlers, SeveralServedNames) {
  options_.served_model_names = {"one", "two"};
  EXPECT_EQ(chat("x")->json()["model"], "one");
  EXPECT_EQ(chat("x", R"("model":"two")")->json()["model"], "two");
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

TEST_F(Handlers, StreamedUsageComesOnlyWhenAsked) {
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

TEST_F(Handlers, ErrorsInMidStreamAreAnEventBeforeDone) {
  const auto exchange = chat("!fail with this", R"("stream":true)");
  const auto events = exchange->events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2]["error"]["code"], 400);
  EXPECT_TRUE(exchange->stream.ends_with("data: [DONE]\n\n"));
}

TEST_F(Handlers, AnErrorInMidAnswerIsTheWholeAnswer) {
  const auto exchange = chat("!fail with this");
  EXPECT_EQ(exchange->response.status, 400);
  EXPECT_EQ(exchange->json()["error"]["type"], "BadRequestError");
}

TEST_F(Handlers, AClientThatLeavesCancelsItsRequests) {
  auto exchange = begin("POST", "/v1/chat/completions", chat_body("!hang", R"("stream":true)"));
  exchange->run_until_streaming();
  exchange->leave();
  engine_.wait_for_cancelled(1);
  EXPECT_THAT(
      service_->metrics.text(),
      HasSubstr(
          R"(vllm:request_success_total{engine="0",finished_reason="abort",model_name="fake"} 1)"));
}

TEST_F(Handlers, CompletionsNumberChoicesThroughAllPrompts) {
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

TEST_F(Handlers, TokenIdsComeWhenAsked) {
  const Json answer = chat("a b", R"("return_token_ids":true)")->json();
  EXPECT_EQ(answer["choices"][0]["token_ids"].size(), 2u);
  EXPECT_EQ(answer["choices"][0]["prompt_token_ids"], Json({0, 1}));
}

TEST_F(Handlers, ClassifyGivesTheProbabilitiesOrTheLogits) {
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

TEST_F(Handlers, ModelsListsBaseAndAdapters) {
  const Json list = call("GET", "/v1/models")->json();
  EXPECT_EQ(list["object"], "list");
  ASSERT_EQ(list["data"].size(), 3u);
  const Json& base = list["data"][0];
  EXPECT_EQ(base["id"], "fake");
  EXPECT_EQ(base["object"], "model");
  EXPECT_EQ(base["root"], "/models/fake");
  EXPECT_TRUE(base["parent"].is_null());
  EXPECT_EQ(base["max_model_len"], 4096);
  EXPECT_EQ(base["permission"].size(), 1u);
  const Json lens = call("GET", "/v1/models/lens")->json();
  EXPECT_EQ(lens["id"], "lens");
  EXPECT_EQ(lens["root"], "/adapters/lens");
  EXPECT_EQ(lens["parent"], "fake");
  EXPECT_EQ(call("GET", "/v1/models/fake")->json()["id"], "fake");
  EXPECT_EQ(call("GET", "/v1/models/none")->response.status, 404);
  EXPECT_EQ(call("GET", "/v1/models/")->response.status, 404);
}

TEST_F(Handlers, AdaptersLoadAndUnloadInTheWordsOfVllm) {
  const auto load = [&](const std::string& body) {
    return call("POST", "/v1/load_lora_adapter", body);
  };
  auto exchange = load(R"({"lora_name":"new","lora_path":"/p","base_model_name":"fake"})");
  EXPECT_EQ(exchange->response.status, 200);
  EXPECT_EQ(exchange->response.body, "Success: LoRA adapter 'new' added successfully.");
  EXPECT_EQ(call("GET", "/v1/models/new")->response.status, 200);

  exchange = load(R"({"lora_name":"new","lora_path":"/p"})");
  EXPECT_EQ(exchange->response.status, 400);
  EXPECT_EQ(exchange->json()["error"]["type"], "InvalidUserInput");
  EXPECT_EQ(load(R"({"lora_name":"new","lora_path":"/p","load_inplace":true})")->response.status,
            200);
  EXPECT_EQ(
      load(R"({"lora_name":"new","lora_path":"/p","expected_generation":1})")->response.status,
      409);
  EXPECT_EQ(load(R"({"lora_name":"","lora_path":"/p"})")->json()["error"]["type"],
            "InvalidUserInput");
  EXPECT_EQ(load(R"({"lora_name":"fake","lora_path":"/p"})")->json()["error"]["type"],
            "InvalidUserInput");
  EXPECT_EQ(load(R"({"lora_name":"x","lora_path":"/missing"})")->response.status, 404);
  EXPECT_EQ(load(R"({"lora_name":"x","lora_path":"/broken"})")->response.status, 422);
  EXPECT_EQ(load(R"({"lora_name":"x","lora_path":5})")->response.status, 400);

  exchange = call("POST", "/v1/unload_lora_adapter", R"({"lora_name":"new"})");
  EXPECT_EQ(exchange->response.body, "Success: LoRA adapter 'new' removed successfully.");
  EXPECT_EQ(call("POST", "/v1/unload_lora_adapter", R"({"lora_name":"new"})")->response.status,
            404);
  EXPECT_EQ(call("POST", "/v1/unload_lora_adapter", "{}")->response.status, 400);
}

TEST_F(Handlers, AdaptersAreListedWithTheirGeneration) {
  const Json list = call("GET", "/v1/lora_adapters")->json();
  ASSERT_EQ(list["data"].size(), 2u);
  EXPECT_EQ(list["data"][0]["name"], "birds");
  EXPECT_EQ(list["data"][0]["generation"], 2);
  EXPECT_EQ(list["data"][0]["heads"],
            Json::parse(R"([{"name":"species","labels":["cat","dog","owl"]}])"));
}

TEST_F(Handlers, RuntimeLoadingIsOffUnlessAllowed) {
  options_.allow_runtime_lora_updating = false;
  const auto exchange =
      call("POST", "/v1/load_lora_adapter", R"({"lora_name":"a","lora_path":"/p"})");
  EXPECT_EQ(exchange->response.status, 403);
  EXPECT_THAT(exchange->response.body, HasSubstr("--allow-runtime-lora-updating"));
}

TEST_F(Handlers, TheResolverLoadsFoldersByName) {
  const valora::testing::TempDir directory;
  for (const char* name : {"ocr", "broken"})
    std::filesystem::create_directory(directory.file(name));
  options_.lora_resolver_dir = directory.path();
  EXPECT_EQ(chat("x", R"("model":"ocr")")->response.status, 200);
  EXPECT_EQ(chat("x", R"("model":"fake:ocr")")->response.status, 200);
  EXPECT_EQ(chat("x", R"("model":"other")")->response.status, 404);
  const auto broken = chat("x", R"("model":"broken")");
  EXPECT_EQ(broken->response.status, 400);
  EXPECT_THAT(broken->response.body, HasSubstr("NaN"));
  EXPECT_EQ(broken->json()["error"]["param"], "model");
}

TEST_F(Handlers, OneLoadServesAllThatWaitForIt) {
  const valora::testing::TempDir directory;
  std::filesystem::create_directory(directory.file("ocr"));
  options_.lora_resolver_dir = directory.path();
  engine_.hold_loads();
  const auto first = begin("POST", "/v1/chat/completions", chat_body("x", R"("model":"ocr")"));
  const auto second = begin("POST", "/v1/chat/completions", chat_body("y", R"("model":"ocr")"));
  EXPECT_EQ(engine_.release_loads(), 1u);
  first->run();
  second->run();
  EXPECT_EQ(first->response.status, 200);
  EXPECT_EQ(second->response.status, 200);
}

TEST_F(Handlers, ALoadThatFailsBecauseSomebodyElseWasFasterIsNoError) {
  const valora::testing::TempDir directory;
  std::filesystem::create_directory(directory.file("ocr"));
  options_.lora_resolver_dir = directory.path();
  engine_.hold_loads();
  const auto exchange = begin("POST", "/v1/chat/completions", chat_body("x", R"("model":"ocr")"));
  engine_.add_adapter("ocr");
  engine_.release_loads();
  exchange->run();
  EXPECT_EQ(exchange->response.status, 200);
}

TEST(SafeFolderName, LeavesTheDirectoryInNoWay) {
  for (const char* good : {"a", "my-adapter_1.2", "caf\xC3\xA9"})
    EXPECT_TRUE(safe_folder_name(good)) << good;
  for (const char* bad : {"", ".", "..", "../a", "a/b", "/etc", "a\\b", ".hidden", "a\nb"})
    EXPECT_FALSE(safe_folder_name(bad)) << bad;
  EXPECT_FALSE(safe_folder_name(std::string("a\0b", 3)));
  EXPECT_FALSE(safe_folder_name(std::string(256, 'a')));
}

TEST_F(Handlers, TokenizeAndDetokenize) {
  const Json tokens = call("POST", "/tokenize", R"({"prompt":"a b c"})")->json();
  EXPECT_EQ(tokens["count"], 3);
  EXPECT_EQ(tokens["tokens"].size(), 3u);
  EXPECT_EQ(tokens["max_model_len"], 4096);
  EXPECT_EQ(call("POST", "/detokenize", R"({"tokens":[1,2]})")->json()["prompt"], "<1><2>");
  EXPECT_EQ(call("POST", "/tokenize", R"({"model":"nope","prompt":"a"})")->response.status, 404);
}

TEST_F(Handlers, HealthFollowsTheEngineAndTheDrain) {
  EXPECT_EQ(call("GET", "/health")->response.status, 200);
  EXPECT_EQ(call("POST", "/ping")->response.status, 200);
  engine_.set_healthy(false);
  EXPECT_EQ(call("GET", "/health")->response.status, 503);
  engine_.set_healthy(true);
  service_->draining = true;
  EXPECT_EQ(call("GET", "/health")->response.status, 503);
  EXPECT_EQ(chat("x")->response.status, 503);
}

TEST_F(Handlers, UnknownPathsAndMethodsAreOpenAiErrors) {
  EXPECT_EQ(call("GET", "/nope")->json()["error"]["code"], 404);
  const auto exchange = call("GET", "/v1/chat/completions");
  EXPECT_EQ(exchange->response.status, 405);
  EXPECT_EQ(exchange->response.headers.front(),
            (std::pair<std::string, std::string>("Allow", "POST, OPTIONS")));
  EXPECT_EQ(call("POST", "/v1/models")->response.status, 405);
  EXPECT_EQ(call("GET", "/version")->json()["version"], VALORA_VERSION);
}

class Access : public Handlers {
 protected:
  std::optional<HttpResponse> screen(const std::string& method, const std::string& path,
                                     Headers headers) {
    if (!service_) service_ = std::make_shared<Service>(options_, engine_);
    common_.clear();
    return App(service_).screen({.method = method, .path = path, .headers = std::move(headers)},
                                common_);
  }
  std::string common(std::string_view name) const {
    for (const auto& [key, value] : common_)
      if (key == name) return value;
    return {};
  }
  Headers common_;
};

TEST_F(Access, KeysGuardAllButTheStatusPages) {
  options_.api_keys = {"secret", "other"};
  for (const char* value :
       {"", "secret", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret"}) {
    const auto refused = screen("POST", "/v1/chat/completions", {{"Authorization", value}});
    ASSERT_TRUE(refused) << value;
    EXPECT_EQ(refused->status, 401);
    EXPECT_EQ(refused->headers.front().first, "WWW-Authenticate");
  }
  EXPECT_FALSE(screen("POST", "/v1/chat/completions", {{"Authorization", "Bearer secret"}}));
  EXPECT_FALSE(screen("POST", "/classify", {{"authorization", "bearer other"}}));
  for (const char* path : {"/classify", "/tokenize", "/v1/load_lora_adapter"})
    EXPECT_EQ(screen("POST", path, {})->status, 401) << path;
  for (const char* path : {"/v1/models", "/v1/models/fake", "/v1/lora_adapters"})
    EXPECT_EQ(screen("GET", path, {})->status, 401) << path;
  for (const char* path : {"/health", "/ping", "/metrics", "/version"})
    EXPECT_FALSE(screen("GET", path, {})) << path;
}

TEST_F(Access, CorsHeadersGoToAllowedOriginsOnly) {
  options_.cors_allowed_origins = {"https://a.example"};
  screen("GET", "/v1/models", {{"Origin", "https://a.example"}});
  EXPECT_EQ(common("Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_EQ(common("Vary"), "Origin");
  screen("GET", "/v1/models", {{"Origin", "https://b.example"}});
  EXPECT_EQ(common("Access-Control-Allow-Origin"), "");
  const auto preflight = screen(
      "OPTIONS", "/v1/chat/completions",
      {{"Origin", "https://a.example"}, {"Access-Control-Request-Headers", "authorization"}});
  EXPECT_EQ(preflight->status, 204);
  EXPECT_EQ(common("Access-Control-Allow-Headers"), "authorization");
  EXPECT_THAT(common("Access-Control-Allow-Methods"), HasSubstr("POST"));
}

TEST_F(Access, CorsIsOffByDefaultAndStarMeansAny) {
  screen("GET", "/v1/models", {{"Origin", "https://a.example"}});
  EXPECT_TRUE(common_.empty());
  service_.reset();
  options_.cors_allowed_origins = {"*"};
  screen("GET", "/v1/models", {{"Origin", "https://a.example"}});
  EXPECT_EQ(common("Access-Control-Allow-Origin"), "*");
}

TEST_F(Access, OnlyJsonBodiesAreTaken) {
  EXPECT_EQ(screen("POST", "/v1/chat/completions", {{"Content-Type", "text/plain"}})->status, 415);
  EXPECT_FALSE(screen("POST", "/v1/chat/completions",
                      {{"Content-Type", "application/json; charset=utf-8"}}));
  EXPECT_FALSE(screen("POST", "/v1/chat/completions", {}));
}

}  // namespace
}  // namespace valora::server
