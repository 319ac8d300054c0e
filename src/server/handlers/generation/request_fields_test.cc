// Every field that other servers know is either honoured, documented as having no effect, or
// refused.
#include "server/openai/request_fields.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;
using ::testing::HasSubstr;

using Effect = RequestField::Effect;

class RequestFields : public Handlers {
 protected:
  // Calls `check` with the endpoint, the field, and the smallest body that contains the field and
  // those that it needs.
  template <typename Check>
  void for_each(Effect effect, Check check) {
    int fields = 0;
    const Json table = Json::parse(request_fields_text());
    for (const auto& [path, smallest] : table["bodies"].items())
      for (const RequestField& field : request_fields(path)) {
        if (field.effect != effect) continue;
        SCOPED_TRACE(path + " " + field.name);
        Json body = smallest;
        if (field.entry.contains("with")) body.update(Json(field.entry["with"]));
        body[field.name] = Json(field.entry["example"]);
        check(path, field, std::move(body));
        ++fields;
      }
    EXPECT_GT(fields, 30);
  }
};

TEST_F(RequestFields, HonouredFieldsAreReadAndTypeChecked) {
  for_each(Effect::kHonoured,
           [this](const std::string& path, const RequestField& field, Json body) {
             const auto accepted = call("POST", path, body.dump());
             EXPECT_EQ(accepted->response.status, 200) << accepted->response.body;
             body[field.name] = Json::parse(R"([[["wrong"]]])");
             const auto refused = call("POST", path, body.dump());
             EXPECT_EQ(refused->response.status, 400);
             EXPECT_THAT(refused->json()["error"]["param"].get<std::string>(),
                         ::testing::StartsWith(field.name));
           });
}

TEST_F(RequestFields, FieldsThatNeedOthersAreNotDroppedWithoutThem) {
  for_each(Effect::kHonoured,
           [this](const std::string& path, const RequestField& field, Json body) {
             if (!field.entry.contains("with")) return;
             const Json smallest = Json::parse(request_fields_text())["bodies"][path];
             for (const auto& [other, _] : field.entry["with"].items()) {
               body.erase(other);
               if (smallest.contains(other)) body[other] = smallest[other];
             }
             const auto refused = call("POST", path, body.dump());
             EXPECT_EQ(refused->response.status, 400) << refused->response.body;
             EXPECT_EQ(refused->json()["error"]["param"], field.name);
           });
}

TEST_F(RequestFields, RefusedFieldsAreNamed) {
  for_each(Effect::kRefused, [this](const std::string& path, const RequestField& field,
                                    const Json& body) {
    const auto refused = call("POST", path, body.dump());
    EXPECT_EQ(refused->response.status, 400) << refused->response.body;
    EXPECT_EQ(refused->json()["error"]["param"], field.name);
    EXPECT_THAT(refused->json()["error"]["message"].get<std::string>(), HasSubstr(field.name));
  });
}

TEST_F(RequestFields, FieldsWithoutEffectAreAccepted) {
  for_each(Effect::kNone, [this](const std::string& path, const RequestField&, const Json& body) {
    const auto accepted = call("POST", path, body.dump());
    EXPECT_EQ(accepted->response.status, 200) << accepted->response.body;
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
