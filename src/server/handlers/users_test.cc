#include "base/json.h"
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

TEST_F(UsersTest, NeedTheirKey) {
  EXPECT_EQ(call("GET", "/v1/models")->response.status, 401);
  EXPECT_EQ(call("GET", "/v1/models", {}, as("sk-narrow-2"))->response.status, 401);
  EXPECT_EQ(call("GET", "/v1/models", {}, as("sk-wide-22"))->response.status, 200);
  EXPECT_EQ(call("GET", "/health")->response.status, 200);
}

TEST_F(UsersTest, SeeAndAskTheirModelsAlone) {
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

TEST_F(UsersTest, MayHaveTheirTextsReadAsPlain) {
  const auto plain = [&](const std::string& key) {
    service_ = nullptr;  // made anew with the options
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

TEST_F(UsersTest, TokenizeForTheirModelsAlone) {
  for (const char* path : {"/tokenize", "/detokenize"}) {
    const auto status = [&](const std::string& model) {
      const std::string body = R"({"prompt":"a","tokens":[1],"model":")" + model + "\"}";
      return call("POST", path, body, as("sk-narrow-1"))->response.status;
    };
    EXPECT_EQ(status("lens"), 200) << path;
    EXPECT_EQ(status("birds"), 404) << path << ": as if it did not exist";
  }
}

TEST_F(UsersTest, AreOneClientHoweverTheyWriteTheirKey) {
  for (const char* scheme : {"Bearer ", "bearer ", "BEARER  "})
    call("POST", "/v1/chat/completions", chat_body("x", R"("model":"birds","max_tokens":5)"),
         {{"Authorization", std::string(scheme) + "sk-wide-22"}});
  const auto requests = engine_.requests();
  ASSERT_GE(requests.size(), 2u);
  EXPECT_FALSE(requests.front().client.empty());
  for (const auto& request : requests) EXPECT_EQ(request.client, requests.front().client);
}

TEST_F(UsersTest, LoadTheirAdaptersAlone) {
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

TEST_F(UsersTest, RequestsUnderWayAreLimited) {
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

TEST_F(UsersTest, TokensUnderWayAreLimited) {
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

}  // namespace
}  // namespace valora::server
