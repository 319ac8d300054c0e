#include <map>

#include "base/json/json.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using ::testing::ElementsAre;
using testing::Handlers;
using ::testing::HasSubstr;

class UsersTest : public Handlers {
 protected:
  UsersTest() {
    User narrow{.name = "narrow", .key = "sk-narrow-1"};
    narrow.models = {{"le*"}};
    narrow.loads = {"mine-*"};
    narrow.max_requests = 2;
    narrow.max_tokens = 100;
    narrow.share = 3;
    options_.users = {narrow, {.name = "wide", .key = "sk-wide-22"}};
  }
  static Headers as(const std::string& key) { return {{"Authorization", "Bearer " + key}}; }
  std::shared_ptr<testing::FakeExchange> ask(const std::string& key, const std::string& text,
                                             const std::string& fields) {
    return begin("POST", "/v1/chat/completions", chat_body(text, fields), as(key));
  }
};

TEST_F(UsersTest, RequestWithoutAKnownKeyIsRefused) {
  EXPECT_EQ(call("GET", "/v1/models")->response.status, 401);
  EXPECT_EQ(call("GET", "/v1/models", {}, as("sk-narrow-2"))->response.status, 401);
  EXPECT_EQ(call("GET", "/v1/models", {}, as("sk-wide-22"))->response.status, 200);
  EXPECT_EQ(call("GET", "/health")->response.status, 200);
}

TEST_F(UsersTest, UsersSeeAndUseOnlyTheirModels) {
  std::vector<std::string> names;
  const Json list = call("GET", "/v1/models", {}, as("sk-narrow-1"))->json();
  for (const Json& card : list["data"]) names.push_back(card["id"]);
  EXPECT_THAT(names, ElementsAre("lens"));
  EXPECT_EQ(call("GET", "/v1/models/birds", {}, as("sk-narrow-1"))->response.status, 404);
  EXPECT_EQ(call("GET", "/v1/lora_adapters", {}, as("sk-narrow-1"))->json()["data"].size(), 1u);
  for (const char* fields : {R"("model":"birds")", R"("model":"fake")", R"("model":"nothing")",
                             R"("model":"lens","lora":[{"name":"birds"}])"}) {
    const auto refused = ask("sk-narrow-1", "x", std::string(fields) + R"(,"max_tokens":9)");
    refused->run();
    EXPECT_EQ(refused->response.status, 404) << fields;
  }
  const auto answer = ask("sk-narrow-1", "x", R"("model":"lens","max_tokens":9)");
  answer->run();
  EXPECT_EQ(answer->response.status, 200);
  EXPECT_EQ(engine_.requests().back().tenant, "user narrow");
  EXPECT_EQ(engine_.requests().back().share, 3);
}

TEST_F(UsersTest, TextsOfAUserMayBeReadAsPlain) {
  const auto plain = [&](const std::string& key) {
    service_ = nullptr;  // recreated with the options
    const auto exchange = ask(key, "x", R"("model":"lens","max_tokens":9)");
    exchange->run();
    return std::get<ChatPrompt>(engine_.requests().back().prompt).plain_texts;
  };
  EXPECT_FALSE(plain("sk-wide-22"));
  options_.users[0].special_tokens_in_content = false;
  EXPECT_TRUE(plain("sk-narrow-1"));
  options_.special_tokens_in_content = false;
  EXPECT_TRUE(plain("sk-wide-22"));
  options_.users[1].special_tokens_in_content = true;
  EXPECT_FALSE(plain("sk-wide-22"));
}

TEST_F(UsersTest, UsersTokenizeOnlyForTheirModels) {
  for (const char* path : {"/tokenize", "/detokenize"}) {
    const auto status = [&](const std::string& model) {
      const std::string body = R"({"prompt":"a","tokens":[1],"model":")" + model + "\"}";
      return call("POST", path, body, as("sk-narrow-1"))->response.status;
    };
    EXPECT_EQ(status("lens"), 200) << path;
    EXPECT_EQ(status("birds"), 404) << path << ": as if it did not exist";
  }
}

TEST_F(UsersTest, SpellingOfTheAuthSchemeDoesNotChangeTheClient) {
  for (const char* scheme : {"Bearer ", "bearer ", "BEARER  "})
    call("POST", "/v1/chat/completions", chat_body("x", R"("model":"birds","max_tokens":5)"),
         {{"Authorization", std::string(scheme) + "sk-wide-22"}});
  const auto requests = engine_.requests();
  ASSERT_GE(requests.size(), 2u);
  EXPECT_FALSE(requests.front().client.empty());
  for (const auto& request : requests) EXPECT_EQ(request.client, requests.front().client);
}

TEST_F(UsersTest, UsersLoadOnlyTheirAdapters) {
  const auto status = [&](const std::string& path, const std::string& name) {
    return call("POST", path, R"({"lora_path":"/p","lora_name":")" + name + "\"}",
                as("sk-narrow-1"))
        ->response.status;
  };
  EXPECT_EQ(status("/v1/load_lora_adapter", "mine-1"), 200);
  EXPECT_EQ(status("/v1/load_lora_adapter", "other"), 403);
  EXPECT_EQ(status("/v1/unload_lora_adapter", "lens"), 403);
  EXPECT_EQ(status("/v1/unload_lora_adapter", "mine-1"), 200);
}

TEST_F(UsersTest, ConcurrentRequestsAreLimited) {
  const std::string fields = R"("model":"lens","max_tokens":10)";
  const auto first = ask("sk-narrow-1", "!hang", fields);
  const auto second = ask("sk-narrow-1", "!hang", fields);
  const auto third = ask("sk-narrow-1", "x", fields);
  third->run();
  EXPECT_EQ(third->response.status, 429);
  EXPECT_THAT(third->json()["error"]["message"].get<std::string>(), HasSubstr("`narrow`"));
  const auto other = ask("sk-wide-22", "x", fields);
  other->run();
  EXPECT_EQ(other->response.status, 200) << "another user is not concerned";
  engine_.release_hanging();
  first->run();
  second->run();
  const auto again = ask("sk-narrow-1", "x", fields);
  again->run();
  EXPECT_EQ(again->response.status, 200);
}

TEST_F(UsersTest, ConcurrentTokensAreLimited) {
  const auto status = [&](const std::string& fields) {
    const auto exchange = ask("sk-narrow-1", "x", R"("model":"lens")" + fields);
    exchange->run();
    return exchange->response.status;
  };
  EXPECT_EQ(status(R"(,"max_tokens":100)"), 200);
  EXPECT_EQ(status(R"(,"max_tokens":101)"), 429);
  EXPECT_EQ(status(R"(,"max_tokens":51,"n":2)"), 429);
  EXPECT_EQ(status(""), 429) << "without a limit, as many as the model takes";
  EXPECT_EQ(status(R"(,"max_tokens":50,"n":2)"), 200) << "refusals take nothing";
}

class UsersSight : public UsersTest {
 protected:
  UsersSight() {
    options_.applications = {{.name = "video"}, {.name = "archive"}};
    options_.users[0].applications = {{"video"}};
    options_.api_keys = {"sk-operator"};
    engine_.add_adapter("mine-1");
  }
  Json list(const std::string& path, const std::string& key) {
    return call("GET", path, {}, as(key))->json();
  }
  std::string metrics(const std::string& key) {
    return call("GET", "/metrics", {}, key.empty() ? Headers{} : as(key))->response.body;
  }
};

TEST_F(UsersSight, FoldersAreShownToWhoMayLoadTheAdapter) {
  const auto paths = [](const Json& adapters) {
    std::map<std::string, Json> out;
    for (const Json& adapter : adapters) out[adapter["name"]] = adapter["path"];
    return out;
  };
  const std::map<std::string, Json> narrow = {{"lens", nullptr}, {"mine-1", "/adapters/mine-1"}};
  EXPECT_EQ(paths(list("/v1/lora_adapters", "sk-narrow-1")["data"]), narrow);
  EXPECT_EQ(paths(list("/v1/stats", "sk-narrow-1")["adapters"]), narrow);
  const auto wide = paths(list("/v1/lora_adapters", "sk-wide-22")["data"]);
  EXPECT_EQ(wide.size(), 3u);
  for (const auto& [name, path] : wide) EXPECT_TRUE(path.is_null()) << name;
  EXPECT_EQ(paths(list("/v1/stats", "sk-operator")["adapters"])["lens"], "/adapters/lens");
  EXPECT_EQ(list("/v1/models/lens", "sk-narrow-1")["root"], "lens");
  EXPECT_EQ(list("/v1/models", "sk-wide-22")["data"][0]["root"], "fake");
  EXPECT_EQ(list("/v1/models", "sk-operator")["data"][0]["root"], "/models/fake");
  EXPECT_EQ(list("/v1/models/lens", "sk-operator")["root"], "/adapters/lens");
}

TEST_F(UsersSight, MetricsNameWhatTheirReaderMaySee) {
  for (const char* model : {"lens", "birds"})
    ask("sk-wide-22", "x", std::string("\"model\":\"") + model + "\"")->run();
  const auto hanging = ask("sk-wide-22", "!hang", R"("model":"birds")");
  const auto named = [](const std::string& text, const char* label, const std::string& name) {
    return text.find(std::string(label) + "=\"" + name + "\"") != text.npos;
  };
  const std::string all = metrics("sk-operator");
  for (const char* name : {"lens", "birds", "mine-1"})
    EXPECT_TRUE(named(all, "adapter_name", name)) << name;
  EXPECT_TRUE(named(all, "application", "archive"));
  EXPECT_TRUE(named(all, "running_lora_adapters", "birds") ||
              named(all, "waiting_lora_adapters", "birds"));
  const std::string narrow = metrics("sk-narrow-1");
  EXPECT_TRUE(named(narrow, "adapter_name", "lens"));
  EXPECT_TRUE(named(narrow, "adapter_name", "mine-1"));
  EXPECT_TRUE(named(narrow, "application", "video"));
  EXPECT_EQ(narrow.find("birds"), narrow.npos);
  EXPECT_EQ(narrow.find("archive"), narrow.npos);
  EXPECT_EQ(narrow.find("user wide"), narrow.npos);
  for (const char* key : {"", "sk-unknown"}) {
    const std::string stranger = metrics(key);
    EXPECT_NE(stranger.find("vllm:num_requests_running"), stranger.npos);
    EXPECT_NE(stranger.find("vllm:lora_requests_info"), stranger.npos);
    for (const char* end_of_label :
         {"lens\"", "birds\"", "mine-1\"", "video\"", "archive\"", "wide\""})
      EXPECT_EQ(stranger.find(end_of_label), stranger.npos) << end_of_label;
  }
  engine_.release_hanging();
  hanging->run();
}

// Priorities and applications of users.
class UsersInApplications : public UsersTest {
 protected:
  UsersInApplications() {
    options_.applications = {{.name = "retrieval", .models = {"lens"}, .priority = 2},
                             {.name = "video", .models = {"birds"}}};
  }
  // Sends a request as user "wide", who has these rights.
  std::shared_ptr<testing::FakeExchange> ask_wide(const std::string& fields,
                                                  const std::string& header = {}) {
    Headers headers = as("sk-wide-22");
    if (!header.empty()) headers.emplace_back("X-Valora-Application", header);
    const auto exchange = call("POST", "/v1/chat/completions", chat_body("x", fields), headers);
    return exchange;
  }
  std::string tenant(const std::string& fields, const std::string& header = {}) {
    const auto exchange = ask_wide(fields, header);
    EXPECT_EQ(exchange->response.status, 200) << exchange->response.body;
    return engine_.requests().back().tenant;
  }
  int priority(const std::string& fields) {
    const auto exchange = ask_wide(fields);
    if (exchange->response.status != 200) return -exchange->response.status;
    return engine_.requests().back().priority;
  }
  User& wide() {
    service_ = nullptr;  // recreated with the options
    return options_.users[1];
  }
};

TEST_F(UsersInApplications, MayOnlyLowerTheirPriority) {
  EXPECT_EQ(priority(R"("model":"fake")"), 0);
  EXPECT_EQ(priority(R"("model":"fake","priority":4)"), 4);
  EXPECT_EQ(priority(R"("model":"fake","priority":-1)"), -403);
  EXPECT_EQ(priority(R"("model":"lens")"), 2);
  EXPECT_EQ(priority(R"("model":"lens","priority":1)"), -403) << "above its application's";
}

TEST_F(UsersInApplications, MayHaveAPriorityOfTheirOwn) {
  wide().priority = -2;
  EXPECT_EQ(priority(R"("model":"lens","priority":-2)"), -2);
  EXPECT_EQ(priority(R"("model":"lens")"), 2) << "the default stays";
  EXPECT_EQ(priority(R"("model":"lens","priority":-3)"), -403);
  wide().priority = 5;
  EXPECT_EQ(priority(R"("model":"lens")"), 5) << "the highest it may have";
  EXPECT_EQ(priority(R"("model":"lens","priority":4)"), -403);
  options_.allow_any_priority = true;
  EXPECT_EQ((wide(), priority(R"("model":"lens","priority":4)")), -403) << "its own field holds";
  wide().priority.reset();
  EXPECT_EQ(priority(R"("model":"lens","priority":-9)"), -9);
}

TEST_F(UsersInApplications, TheServersOwnKeyHasAllRights) {
  options_.api_keys = {"sk-operator"};
  const auto answer =
      call("POST", "/v1/chat/completions", chat_body("x", R"("priority":-9)"), as("sk-operator"));
  EXPECT_EQ(answer->response.status, 200);
  EXPECT_EQ(engine_.requests().back().priority, -9);
}

TEST_F(UsersInApplications, SharedKeyMayOnlyLowerPriority) {
  options_.users.clear();
  options_.api_keys = {"sk-operator"};
  const auto answer =
      call("POST", "/v1/chat/completions", chat_body("x", R"("priority":-9)"), as("sk-operator"));
  EXPECT_EQ(answer->response.status, 403);
}

TEST_F(UsersInApplications, MayNameOnlyTheirApplications) {
  EXPECT_EQ(tenant("", "retrieval"), "retrieval") << "without the field, any";
  wide().applications = {{"video"}};
  EXPECT_EQ(tenant("", "video"), "video");
  EXPECT_EQ(tenant(R"("metadata":{"application":"video"})"), "video");
  EXPECT_EQ(tenant(R"("user":"video")"), "video");
  for (const auto& [fields, header, param] :
       {std::tuple{"", "retrieval", "X-Valora-Application"},
        std::tuple{"", "nobody", "X-Valora-Application"},
        std::tuple{R"("metadata":{"application":"retrieval"})", "", "metadata.application"},
        std::tuple{R"("user":"retrieval")", "", "user"}}) {
    const auto refused = ask_wide(fields, header);
    EXPECT_EQ(refused->response.status, 403) << fields << header;
    EXPECT_EQ(refused->json()["error"]["param"], param);
    EXPECT_THAT(refused->json()["error"]["message"].get<std::string>(),
                HasSubstr("the user `wide` may not name the application `"));
  }
}

TEST_F(UsersInApplications, DefaultToTheirFirstApplication) {
  EXPECT_EQ(tenant(R"("model":"fake")"), "user wide");
  wide().applications = {{"video"}};
  EXPECT_EQ(tenant(R"("model":"fake")"), "video");
  EXPECT_EQ(tenant(R"("model":"lens")"), "video") << "the model's application is not its own";
  wide().applications = {{"video", "retrieval"}};
  EXPECT_EQ(tenant(R"("model":"lens")"), "retrieval") << "the model's is one of its own";
}

TEST_F(UsersInApplications, SeeOnlyTheirApplications) {
  const auto count = [&] {
    return call("GET", "/v1/applications", {}, as("sk-wide-22"))->json()["data"].size();
  };
  EXPECT_EQ(count(), 2u);
  wide().applications = {{"video"}};
  EXPECT_EQ(count(), 1u);
}

TEST_F(UsersInApplications, UnknownApplicationOfAUserIsRefused) {
  EXPECT_TRUE(check(options_).ok());
  wide().applications = {{"video", "audio"}};
  EXPECT_EQ(check(options_).error().message,
            "the user \"wide\" has the application \"audio\", which --applications lacks");
}

}  // namespace
}  // namespace valora::server
