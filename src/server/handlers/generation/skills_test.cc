// Chats with "skills" and /v1/analyze. The fake engine repeats the last message.
#include "base/json/json.h"
#include "server/testing/handlers_fixture.h"
#include "server/testing/server_fixture.h"

namespace valora::server {
namespace {

using ::testing::ElementsAre;
using testing::Handlers;
using ::testing::HasSubstr;
using testing::SocketClient;

constexpr const char* kPicture = R"({"type":"image_url","image_url":{"url":"data:,x"}})";

class Skills : public Handlers {
 protected:
  std::shared_ptr<testing::FakeExchange> analyze(const std::string& fields) {
    return call("POST", "/v1/analyze", "{" + fields + "}");
  }
  std::vector<std::string> texts(size_t request) {
    std::vector<std::string> out;
    for (const ContentPart& part : parts(request)) out.push_back(std::get<std::string>(part));
    return out;
  }
  std::vector<ContentPart> parts(size_t request) {
    return std::get<ChatPrompt>(engine_.requests().at(request).prompt).messages.back().parts;
  }
  static std::string content(const Json& answer) {
    return answer["choices"][0]["message"]["content"].get<std::string>();
  }
  // The error of a body that is refused as a whole.
  Json refusal(const std::string& path, const std::string& body) {
    const auto exchange = call("POST", path, body);
    EXPECT_EQ(exchange->response.status, 400) << exchange->response.body;
    EXPECT_THAT(engine_.requests(), ::testing::IsEmpty());
    return exchange->json()["error"];
  }
};

TEST_F(Skills, AnswerAsSingleRequestsDo) {
  const Json whole = chat("a b c", R"("skills":["lens","fake"],"max_tokens":2)")->json();
  EXPECT_EQ(whole["object"], "chat.completion.skills");
  EXPECT_EQ(whole["skills"].size(), 2);
  for (const std::string name : {"lens", "fake"}) {
    Json answer = whole["skills"][name];
    Json single = chat("a b c", R"("max_tokens":2,"model":")" + name + "\"")->json();
    for (Json* one : {&answer, &single})
      for (const char* field : {"id", "created"}) one->erase(field);
    EXPECT_EQ(answer, single);
  }
  EXPECT_EQ(whole["usage"]["completion_tokens"], 4);
}

TEST_F(Skills, HaveNamesQuestionsAndFieldsOfTheirOwn) {
  const Json whole = chat("a", R"("model":"fake","temperature":0.5,"skills":[
        {"model":"lens","name":"first","question":"q w","max_tokens":1,"temperature":0},
        {"model":"lens","name":"second","response_format":{"type":"json_object"}}])")
                         ->json();
  EXPECT_THAT(texts(0), ElementsAre("a", "q w"));
  EXPECT_THAT(texts(1), ElementsAre("a"));
  EXPECT_EQ(whole["skills"]["first"]["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(engine_.requests()[0].sampling.temperature, 0.0);
  EXPECT_EQ(engine_.requests()[1].sampling.temperature, 0.5);
  EXPECT_FALSE(engine_.requests()[0].constraint.has_value());
  EXPECT_TRUE(engine_.requests()[1].constraint.has_value());
}

TEST_F(Skills, AskTheQuestionOfTheirTaskAboutAPictureAlone) {
  LoadAdapter load{.name = "coins", .path = "x"};
  load.question = "How many coins?";
  engine_.load_adapter(load, [](const auto&) {});
  analyze(R"("image":["data:,x","data:,y"],"skills":["coins",{"model":"lens","question":"q"}])");
  ASSERT_EQ(parts(0).size(), 3u);
  EXPECT_EQ(std::get<MediaRef>(parts(0)[1]).url, "data:,y");
  EXPECT_EQ(std::get<std::string>(parts(0)[2]), "How many coins?");
  EXPECT_EQ(std::get<std::string>(parts(1)[2]), "q");
}

TEST_F(Skills, AskTheRequestsOwnQuestionIfItHasOne) {
  LoadAdapter load{.name = "coins", .path = "x"};
  load.question = "How many coins?";
  engine_.load_adapter(load, [](const auto&) {});
  analyze(R"("video":"data:,x","prompt":"What?","skills":["coins"])");
  ASSERT_EQ(parts(0).size(), 2u);
  EXPECT_EQ(std::get<MediaRef>(parts(0)[0]).kind, MediaRef::Kind::kVideo);
  EXPECT_EQ(std::get<std::string>(parts(0)[1]), "What?");
}

TEST_F(Skills, FailAlone) {
  LoadAdapter load{.name = "cars", .path = "x"};
  load.question = "Find {label}.";
  engine_.load_adapter(load, [](const auto&) {});
  const std::string picture =
      std::string(R"({"messages":[{"role":"user","content":[)") + kPicture +
      R"(]}],"skills":["nobody","lens","cars",{"model":"lens","name":"ok","question":"a b"}]})";
  const Json answers = call("POST", "/v1/chat/completions", picture)->json()["skills"];
  EXPECT_EQ(answers["nobody"]["error"]["code"], 404);
  EXPECT_THAT(answers["lens"]["error"]["message"], HasSubstr("send \"question\""));
  EXPECT_THAT(answers["cars"]["error"]["message"], HasSubstr("the name of an object"));
  EXPECT_THAT(content(answers["ok"]), HasSubstr("a b"));
}

TEST_F(Skills, FailTogetherWithTheFirstError) {
  const auto exchange = chat("a", R"("skills":["nobody","no-one"])");
  EXPECT_EQ(exchange->response.status, 404);
  EXPECT_THAT(exchange->json()["error"]["message"], HasSubstr("nobody"));
}

TEST_F(Skills, AreStreamedAsTheyEnd) {
  const auto exchange = chat("a b", R"("stream":true,"skills":["lens","nobody"])");
  const std::vector<Json> events = exchange->events();
  ASSERT_EQ(events.size(), 3u);
  std::map<std::string, Json> answers;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(events[i]["object"], "chat.completion.skill");
    answers[events[i]["skill"]] = events[i]["answer"];
  }
  EXPECT_EQ(content(answers.at("lens")), "a b");
  EXPECT_TRUE(answers.at("nobody").contains("error"));
  EXPECT_EQ(events[2]["object"], "chat.completion.skills");
  EXPECT_EQ(events[2]["usage"]["completion_tokens"], 2);
  EXPECT_THAT(exchange->stream, ::testing::EndsWith("data: [DONE]\n\n"));
}

using SkillsOverSockets = testing::ServerTest;

TEST_F(SkillsOverSockets, EndWithTheirClient) {
  start();
  engine_.add_adapter("lens");
  size_t asked = 0;
  for (const std::string stream : {"false", "true"}) {
    SocketClient client(port());
    client.send(SocketClient::post_text(
        testing::kChat,
        testing::chat_body("!hang", R"("skills":["lens","fake"],"stream":)" + stream)));
    engine_.wait_for_running(2);
    client.disconnect();
    engine_.wait_for_cancelled(asked += 2);
  }
}

TEST_F(Skills, AreRefusedWithThePathOfTheFault) {
  const std::string chats = "/v1/chat/completions";
  const auto param = [&](const std::string& fields) {
    return refusal(chats, chat_body("a", fields))["param"].get<std::string>();
  };
  EXPECT_EQ(param(R"("skills":[])"), "skills");
  EXPECT_EQ(param(R"("skills":"lens")"), "skills");
  EXPECT_EQ(param(R"("skills":[1])"), "skills[0]");
  EXPECT_EQ(param(R"("skills":["lens","lens"])"), "skills[1]");
  EXPECT_EQ(param(R"("skills":[{"name":"x"}])"), "skills[0].model");
  EXPECT_EQ(param(R"("skills":[{"model":"lens","messages":[]}])"), "skills[0].messages");
  EXPECT_EQ(param(R"("skills":["lens",{"model":"lens","name":"b","top_p":7}])"), "skills[1].top_p");
  EXPECT_EQ(param(R"("skills":["lens"],"top_p":7)"), "top_p");
  EXPECT_EQ(param(R"("skills":["lens"],"model":"birds")"), "model");
  EXPECT_EQ(refusal("/v1/analyze", R"({"skills":["lens"]})")["param"], "image");
  EXPECT_EQ(refusal("/v1/analyze", R"({"image":"data:,x"})")["param"], "skills");
  EXPECT_EQ(refusal("/v1/analyze", R"({"image":[1],"skills":["lens"]})")["param"], "image");
  EXPECT_EQ(refusal("/v1/analyze", R"({"messages":[],"skills":["lens"]})")["param"], "messages");
}

TEST_F(Skills, OfNullAreNone) {
  EXPECT_EQ(chat("a", R"("skills":null)")->json()["object"], "chat.completion");
  EXPECT_EQ(chat("the word \\\"skills\\\"")->json()["object"], "chat.completion");
}

}  // namespace
}  // namespace valora::server
