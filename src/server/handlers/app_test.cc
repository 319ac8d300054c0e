// Routing, API keys, and the endpoints that do not run the model.
#include "server/handlers/app.h"

#include <cctype>
#include <chrono>
#include <thread>

#include "server/handlers/openapi/schemas.h"
#include "server/handlers/routes.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;
using ::testing::HasSubstr;

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
  EXPECT_EQ(base["input_modalities"], Json({"text", "image", "video"}));
  EXPECT_EQ(base["architecture"]["input_modalities"], base["input_modalities"]);
  EXPECT_EQ(base["permission"].size(), 1u);
  const Json lens = call("GET", "/v1/models/lens")->json();
  EXPECT_EQ(lens["id"], "lens");
  EXPECT_EQ(lens["root"], "/adapters/lens");
  EXPECT_EQ(lens["parent"], "fake");
  EXPECT_EQ(call("GET", "/v1/models/fake")->json()["id"], "fake");
  EXPECT_EQ(call("GET", "/v1/models/none")->response.status, 404);
  EXPECT_EQ(call("GET", "/v1/models/")->response.status, 404);
}

TEST_F(Handlers, ModelsDescribeTheirHeads) {
  engine_.add_adapter("two", {{"species", {"cat", "dog"}}, {"mood", {"calm", "wild"}}});
  const Json two = call("GET", "/v1/models/two")->json();
  EXPECT_EQ(two["default_head"], "lm");
  ASSERT_EQ(two["heads"].size(), 2u);
  EXPECT_EQ(two["heads"][1]["name"], "mood");
  EXPECT_EQ(two["heads"][1]["labels"], Json({"calm", "wild"}));
  EXPECT_EQ(two["heads"][1]["request"], Json({{"model", "two"}, {"head", "mood"}}));
  EXPECT_EQ(call("GET", "/v1/models/birds")->json()["default_head"], "species");
  EXPECT_FALSE(call("GET", "/v1/models/lens")->json().contains("heads"));
}

// A list of half a million labels takes seconds to write.
TEST_F(Handlers, ListsCountLabelsInsteadOfNamingThem) {
  engine_.add_adapter("two", {{"species", {"cat", "dog", "yak"}}});
  const auto of_two = [&](const char* path, const char* id) {
    const Json list = call("GET", path)->json();
    for (const Json& card : list["data"])
      if (card[id] == "two") return card["heads"][0];
    return Json();
  };
  for (const Json& head : {of_two("/v1/models", "id"), of_two("/v1/lora_adapters", "name")}) {
    EXPECT_EQ(head["num_labels"], 3);
    EXPECT_FALSE(head.contains("labels"));
  }
}

TEST_F(Handlers, PropsDescribeAModelAsLlamaCppDoes) {
  const Json base = call("GET", "/props")->json();
  EXPECT_EQ(base["default_generation_settings"]["n_ctx"], 4096);
  EXPECT_EQ(base["modalities"]["vision"], true);
  EXPECT_FALSE(base.contains("chat_template"));
  options_.tokenizer_info = R"({"chat_template":"{{ enable_thinking }}","bos_token":"x"})";
  service_.reset();
  EXPECT_EQ(call("GET", "/props")->json()["chat_template"], "{{ enable_thinking }}");
}

TEST_F(Handlers, TokenizeAndDetokenizeAnswer) {
  const Json tokens = call("POST", "/tokenize", R"({"prompt":"a b c"})")->json();
  EXPECT_EQ(tokens["count"], 3);
  EXPECT_EQ(tokens["tokens"].size(), 3u);
  EXPECT_EQ(tokens["max_model_len"], 4096);
  EXPECT_EQ(call("POST", "/detokenize", R"({"tokens":[1,2]})")->json()["prompt"], "<1><2>");
  EXPECT_EQ(call("POST", "/tokenize", R"({"model":"nope","prompt":"a"})")->response.status, 404);
}

TEST_F(Handlers, HealthReflectsEngineStateAndDrain) {
  EXPECT_EQ(call("GET", "/health")->response.status, 200);
  EXPECT_EQ(call("POST", "/ping")->response.status, 200);
  engine_.set_healthy(false);
  EXPECT_EQ(call("GET", "/health")->response.status, 503);
  engine_.set_healthy(true);
  engine_.set_standstill("no request has made progress for 60 s: 0 running, 3 waiting");
  const auto stalled = call("GET", "/health");
  EXPECT_EQ(stalled->response.status, 503);
  EXPECT_EQ(stalled->json()["error"]["message"],
            "no request has made progress for 60 s: 0 running, 3 waiting");
  engine_.set_standstill("");
  EXPECT_EQ(call("GET", "/health")->response.status, 200);
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

TEST_F(Handlers, LoadCountsRequestsThatRunTheModel) {
  // The engine releases an answer shortly after it ends.
  const auto stable_count = [&](int expected) {
    int load = -1;
    for (int i = 0; i < 1000 && load != expected; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(i > 0 ? 10 : 0));
      load = call("GET", "/load")->json()["server_load"].get<int>();
    }
    return load;
  };
  EXPECT_EQ(stable_count(0), 0);
  const auto first = begin("POST", "/v1/chat/completions", chat_body("a", {}));
  const auto second = begin("POST", "/v1/chat/completions", chat_body("b", {}));
  EXPECT_EQ(call("GET", "/load")->json()["server_load"], 2);
  first->run();
  EXPECT_EQ(stable_count(1), 1);
  second->run();
  call("POST", "/v1/chat/completions", "not JSON");
  EXPECT_EQ(stable_count(0), 0);
}

TEST_F(Handlers, OpenApiDescribesEveryRoute) {
  options_.api_keys = {"secret"};
  options_.root_path = "/models/a";
  const Json document = call("GET", "/openapi.json")->json();
  EXPECT_EQ(document["openapi"], "3.1.0");
  EXPECT_EQ(document["servers"][0]["url"], "/models/a");
  EXPECT_EQ(document["components"]["securitySchemes"]["key"]["scheme"], "bearer");
  size_t operations = 0;
  for (const auto& [path, methods] : document["paths"].items())
    for (const auto& [method, operation] : methods.items()) {
      std::string name = method, place = path;
      for (char& c : name) c = static_cast<char>(std::toupper(c));
      for (size_t at; (at = place.find('{')) != place.npos;)
        place.replace(at, place.find('}') + 1 - at, "x");
      const Route* route = find_route(options_, name, place);
      ASSERT_NE(route, nullptr) << method << " " << path;
      EXPECT_EQ(operation["summary"], route->summary);
      EXPECT_EQ(operation.contains("security"), !route->open);
      const bool asked =
          path == "/props" || path == "/v1/files" || path == "/v1/batches" || path == "/v1/streams";
      EXPECT_EQ(operation.contains("parameters"),
                path.find('{') != path.npos || (name == "GET" && asked));
      EXPECT_TRUE(operation["responses"].contains("default"));
      ++operations;
    }
  const auto of_the_api = [&](const Route& route) {
    return !route.summary.empty() && (route.enabled == nullptr || route.enabled(options_));
  };
  const auto expected = std::ranges::count_if(all_routes(), of_the_api);
  EXPECT_EQ(operations, static_cast<size_t>(expected));
}

TEST_F(Handlers, OpenApiListsBodyFields) {
  const Json paths = call("GET", "/openapi.json")->json()["paths"];
  const auto body = [&](const char* path) -> const Json& {
    return paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"];
  };
  const Json& chat = body("/v1/chat/completions");
  EXPECT_EQ(chat["properties"]["temperature"]["type"], "number");
  EXPECT_EQ(chat["properties"]["stop"]["type"], Json({"string", "array"}));
  EXPECT_EQ(chat["properties"]["user"]["description"], "accepted, without effect");
  EXPECT_EQ(chat["properties"]["top_logprobs"]["type"], "integer");  // needs "logprobs"
  for (const auto& [path, methods] : paths.items()) {
    if (!methods.contains("post") || !methods["post"].contains("requestBody")) continue;
    for (const auto& [_, content] : methods["post"]["requestBody"]["content"].items()) {
      const Json properties = content["schema"].value("properties", Json::object());
      for (const auto& [field, schema] : properties.items())
        EXPECT_TRUE(schema.contains("description")) << path << " " << field;
    }
  }
  EXPECT_THAT(chat["description"].get<std::string>(), HasSubstr("use_beam_search"));
  EXPECT_EQ(body("/v1/classify"), body("/classify"));
  EXPECT_EQ(body("/v1/load_lora_adapter")["required"], Json({"lora_name", "lora_path"}));
  EXPECT_EQ(body("/v1/unload_lora_adapter")["properties"].size(), 2u);
  EXPECT_EQ(body("/v1/pin_lora_adapter"), body("/v1/unload_lora_adapter"));
  const Json& form = paths["/v1/upload_lora_adapter"]["post"]["requestBody"]["content"];
  const Json& sent = form["multipart/form-data"]["schema"]["properties"];
  EXPECT_EQ(sent["adapter_model.safetensors"]["format"], "binary");
  EXPECT_FALSE(sent.contains("lora_path"));
  EXPECT_TRUE(paths["/v1/chat/completions"]["post"]["responses"].contains("429"));
  EXPECT_TRUE(paths["/v1/upload_lora_adapter"]["post"]["responses"].contains("507"));
}

TEST(OpenApi, ShapesBecomeSchemas) {
  const auto shape = OrderedJson::parse(R"({"":"object or null: of all","ids?":"list of integer: x",
      "items":[{"a":"string or number: y"}]})");
  EXPECT_EQ(Json::parse(schema_of_shape(shape).dump()), Json::parse(R"({
      "type":["object","null"],"description":"of all","required":["items"],"properties":{
        "ids":{"type":"array","items":{"type":"integer"},"description":"x"},
        "items":{"type":"array","items":{"type":"object","required":["a"],"properties":{
          "a":{"type":["string","number"],"description":"y"}}}}}})"));
}

TEST_F(Handlers, TokenizerInfoExistsOnlyIfEnabled) {
  EXPECT_EQ(call("GET", "/tokenizer_info")->response.status, 404);
  service_.reset();
  options_.tokenizer_info = R"({"chat_template":null})";
  EXPECT_EQ(call("GET", "/tokenizer_info")->response.body, R"({"chat_template":null})");
  EXPECT_TRUE(call("GET", "/openapi.json")->json()["paths"].contains("/tokenizer_info"));
}

TEST_F(Handlers, RootPathPrefixIsOptional) {
  options_.root_path = "/models/a";
  for (const char* path : {"/v1/models/lens", "/models/a/v1/models/lens"})
    EXPECT_EQ(call("GET", path)->json()["id"], "lens") << path;
  EXPECT_EQ(call("GET", "/models/a/v1/models/none")->response.status, 404);
  for (const char* path : {"/models/av1/models", "/models/a/models/a/v1/models"})
    EXPECT_EQ(call("GET", path)->response.status, 404) << path;
  EXPECT_EQ(call("POST", "/models/a/v1/chat/completions", chat_body("x", {}))->response.status,
            200);
  EXPECT_EQ(call("POST", "/models/a/v1/models")->response.status, 405);
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

TEST_F(Access, KeyIsRequiredExceptForStatusPages) {
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

TEST_F(Access, CorsHeadersAreSentToAllowedOriginsOnly) {
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

TEST_F(Access, CorsIsOffByDefaultAndStarAllowsAnyOrigin) {
  screen("GET", "/v1/models", {{"Origin", "https://a.example"}});
  EXPECT_TRUE(common_.empty());
  service_.reset();
  options_.cors_allowed_origins = {"*"};
  screen("GET", "/v1/models", {{"Origin", "https://a.example"}});
  EXPECT_EQ(common("Access-Control-Allow-Origin"), "*");
}

int status_of(const std::optional<HttpResponse>& refused) { return refused ? refused->status : 0; }

// Each endpoint, by what a browser sends for a page of another origin without asking first.
TEST_F(Access, PagesOfOtherOriginsChangeNothing) {
  options_.ollama_api = true;
  const Headers foreign[] = {{{"Host", "here:1"}, {"Origin", "http://elsewhere"}},
                             {{"Host", "here:1"}, {"Origin", "null"}},
                             {{"Host", "here:1"}, {"Origin", "http://here:2"}},
                             {{"Host", "here:1"}, {"Sec-Fetch-Site", "cross-site"}},
                             {{"Host", "here:1"}, {"Sec-Fetch-Site", "same-site"}}};
  size_t changing = 0;
  for (const Route& route : all_routes()) {
    const std::string path(route.path);
    const std::string method(route.method);
    ASSERT_TRUE(method == "GET" || method == "POST" || method == "DELETE") << path;
    const bool of_records = path.starts_with("/v1/files") || path.starts_with("/v1/batches") ||
                            path.starts_with("/v1/streams");
    const bool changes = path.ends_with("load_lora_adapter") ||
                         path.ends_with("pin_lora_adapter") || (of_records && method != "GET");
    EXPECT_EQ(route.changes, changes) << path;
    changing += changes;
    if (route.method == "GET" || route.open) continue;
    for (Headers headers : foreign) {
      EXPECT_EQ(status_of(screen(method, path, headers)), changes ? 403 : 415) << path;
      headers.emplace_back("Content-Type", "application/json");  // browsers ask first
      EXPECT_EQ(status_of(screen(method, path, headers)), changes ? 403 : 0) << path;
    }
  }
  EXPECT_EQ(changing, 14u);
}

TEST_F(Access, OwnPageAndProgramsMayChangeAdapters) {
  const std::string path = "/v1/load_lora_adapter";
  for (const Headers& headers :
       {Headers{}, Headers{{"Host", "here:1"}},
        Headers{{"Host", "here:1"}, {"Origin", "http://here:1"}},
        Headers{{"Host", "Here"}, {"Origin", "https://here"}},
        Headers{{"Host", "[::1]:8000"}, {"Origin", "http://[::1]:8000"}},
        Headers{{"Host", "behind:8000"},
                {"Origin", "https://here"},
                {"X-Forwarded-Host", "here, proxy"}},
        Headers{
            {"Host", "behind:8000"}, {"Origin", "https://here"}, {"Sec-Fetch-Site", "same-origin"}},
        Headers{{"Host", "here"}, {"Sec-Fetch-Site", "none"}}})
    EXPECT_EQ(status_of(screen("POST", path, headers)), 0) << headers.size();
  const Headers foreign = {{"Host", "here"}, {"Origin", "https://a.example"}};
  EXPECT_EQ(status_of(screen("POST", path, foreign)), 403);
  service_.reset();
  options_.cors_allowed_origins = {"https://a.example"};
  EXPECT_EQ(status_of(screen("POST", path, foreign)), 0);
  EXPECT_EQ(status_of(screen("POST", path, {{"Host", "h"}, {"Origin", "https://b.example"}})), 403);
  service_.reset();
  options_.cors_allowed_origins = {"*"};
  EXPECT_EQ(status_of(screen("POST", path, {{"Sec-Fetch-Site", "cross-site"}})), 0);
}

TEST_F(Handlers, GetRequestsChangeNothing) {
  const auto state = [&] {
    std::string out;
    for (const AdapterCard& card : engine_.adapters())
      out += card.name + std::to_string(card.generation) + (card.pinned ? "pinned " : " ");
    return out;
  };
  const std::string before = state();
  for (const Route& route : all_routes())
    if (route.method == "GET")
      call("GET", std::string(route.path) +
                      (route.path.size() > 1 && route.path.ends_with('/') ? "lens" : ""));
  EXPECT_EQ(state(), before);
  EXPECT_TRUE(engine_.requests().empty());
}

TEST_F(Access, NonJsonBodiesAreRefused) {
  EXPECT_EQ(screen("POST", "/v1/chat/completions", {{"Content-Type", "text/plain"}})->status, 415);
  EXPECT_FALSE(screen("POST", "/v1/chat/completions",
                      {{"Content-Type", "application/json; charset=utf-8"}}));
  EXPECT_FALSE(screen("POST", "/v1/chat/completions", {}));
}

}  // namespace
}  // namespace valora::server
