// Every field that other servers know is either honoured, documented as having no effect, or
// refused.
#include "base/files/file.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;
using ::testing::HasSubstr;

class RequestFields : public Handlers {
 protected:
  // Calls `check` with the endpoint, the field, and the smallest body that contains the field.
  template <typename Check>
  void for_each(const char* kind, Check check) {
    const auto table = read_json_file(VALORA_REQUEST_FIELDS);
    ASSERT_TRUE(table.ok()) << table.error().message;
    for (const auto& [path, entry] : table->items())
      for (const auto& [field, value] : entry[kind].items()) {
        SCOPED_TRACE(path + " " + field);
        Json body = entry["body"];
        body[field] = value;
        check(path, field, std::move(body));
      }
  }
};

TEST_F(RequestFields, HonouredFieldsAreReadAndTypeChecked) {
  for_each("honoured", [this](const std::string& path, const std::string& field, Json body) {
    const auto accepted = call("POST", path, body.dump());
    EXPECT_EQ(accepted->response.status, 200) << accepted->response.body;
    body[field] = Json::parse(R"([[["wrong"]]])");
    const auto refused = call("POST", path, body.dump());
    EXPECT_EQ(refused->response.status, 400);
    EXPECT_THAT(refused->json()["error"]["param"].get<std::string>(), ::testing::StartsWith(field));
  });
}

TEST_F(RequestFields, RefusedFieldsAreNamed) {
  for_each("refused", [this](const std::string& path, const std::string& field, const Json& body) {
    const auto refused = call("POST", path, body.dump());
    EXPECT_EQ(refused->response.status, 400) << refused->response.body;
    EXPECT_EQ(refused->json()["error"]["param"], field);
    EXPECT_THAT(refused->json()["error"]["message"].get<std::string>(), HasSubstr(field));
  });
}

TEST_F(RequestFields, FieldsWithoutEffectAreAccepted) {
  for_each("no_effect", [this](const std::string& path, const std::string&, const Json& body) {
    const auto accepted = call("POST", path, body.dump());
    EXPECT_EQ(accepted->response.status, 200) << accepted->response.body;
  });
}

TEST_F(RequestFields, EveryFieldIsDocumented) {
  const auto page = read_file(VALORA_REQUEST_FIELDS_PAGE, size_t{1} << 20);
  ASSERT_TRUE(page.ok()) << page.error().message;
  for (const char* kind : {"honoured", "no_effect", "refused"})
    for_each(kind, [&](const std::string&, const std::string& field, const Json&) {
      EXPECT_THAT(*page, HasSubstr("`" + field + "`"));
    });
}

TEST_F(Handlers, CacheSaltAndPriorityReachTheEngine) {
  chat("x", R"("cache_salt":"tenant","priority":-3)");
  EXPECT_EQ(engine_.requests().back().cache_salt, "tenant");
  EXPECT_EQ(engine_.requests().back().priority, -3);
  call("POST", "/v1/completions", R"({"prompt":["a","b"],"cache_salt":"s","priority":1})");
  EXPECT_EQ(engine_.requests().back().cache_salt, "s");
  EXPECT_EQ(engine_.requests().back().priority, 1);
  call("POST", "/classify", R"({"model":"birds","input":"x","cache_salt":"c","priority":2})");
  EXPECT_EQ(engine_.requests().back().cache_salt, "c");
  EXPECT_EQ(engine_.requests().back().priority, 2);
  chat("x");
  EXPECT_EQ(engine_.requests().back().cache_salt, "");
  EXPECT_EQ(engine_.requests().back().priority, 0);
  EXPECT_EQ(chat("x", R"("cache_salt":"")")->json()["error"]["param"], "cache_salt");
}

TEST_F(Handlers, LoraPathIsTreatedAsAName) {
  const auto content = [&](const std::string& fields) {
    return chat("!echo-adapters", fields)->json()["choices"][0]["message"]["content"];
  };
  EXPECT_EQ(content(R"("lora_path":"lens")"), " lens*1");
  EXPECT_EQ(content(R"("model":"fake","lora_path":"birds")"), " birds*1");
  EXPECT_EQ(content(R"("lora_path":null)"), "");
  const auto path = chat("x", R"("lora_path":"/adapters/lens")");
  EXPECT_EQ(path->response.status, 404);
  EXPECT_EQ(path->json()["error"]["param"], "lora_path");
  EXPECT_EQ(chat("x", R"("lora_path":"lens","lora":[{"name":"birds"}])")->response.status, 400);
}

}  // namespace
}  // namespace valora::server
