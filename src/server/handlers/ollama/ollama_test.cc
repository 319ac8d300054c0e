#include <sstream>

#include "base/json/json.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;

class Ollama : public Handlers {
 protected:
  Ollama() { options_.ollama_api = true; }
  Json post(const std::string& path, const std::string& body) {
    return Json::parse(call("POST", path, body)->response.body);
  }
};

// A chat whose answer is a call of a tool, up to so many tokens.
std::string calling(int most) {
  return R"({"model":"fake","stream":false,"options":{"num_predict":)" + std::to_string(most) +
         R"(},"messages":[{"role":"user",
      "content":"<tool_call>{\"name\": \"look\", \"arguments\": {\"at\": \"a b\"}}</tool_call>"}],
      "tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object",
      "properties":{"at":{"type":"string"}}}}}]})";
}

TEST_F(Ollama, CallsHaveArgumentsAsObjects) {
  const Json answer = post("/api/chat", calling(100));
  EXPECT_EQ(answer["message"]["content"], "");
  EXPECT_EQ(answer["message"]["tool_calls"],
            Json::parse(R"([{"function": {"name": "look", "arguments": {"at": "a b"}}}])"));
  EXPECT_EQ(answer["done"], true);
}

TEST_F(Ollama, CallsThatWereCutOffAreLeftOut) {
  int cut = 0;
  for (int most = 1; most < 100; ++most) {
    const Json answer = post("/api/chat", calling(most));
    if (answer["done_reason"] != "length") break;
    ++cut;
    EXPECT_FALSE(answer["message"].contains("tool_calls")) << most << ": " << answer;
  }
  EXPECT_GE(cut, 4) << "within the arguments, too";
}

TEST_F(Ollama, OptionsAreTranslated) {
  call("POST", "/api/generate",
       R"({"model":"lens:latest","prompt":"x","system":"Be brief.","think":false,"keep_alive":"5m",
           "options":{"temperature":0.25,"num_predict":-1,"repeat_penalty":1.2,"stop":["a"],
                      "num_ctx":4096}})");
  const GenerateRequest asked = engine_.requests().back();
  EXPECT_EQ(asked.adapters.at(0).name, "lens");
  EXPECT_EQ(asked.sampling.temperature, 0.25);
  EXPECT_EQ(asked.sampling.repetition_penalty, 1.2);
  EXPECT_FALSE(asked.sampling.max_tokens);
  EXPECT_EQ(asked.sampling.stop, std::vector<std::string>{"a"});
  const auto& chat = std::get<ChatPrompt>(asked.prompt);
  ASSERT_EQ(chat.messages.size(), 2u);
  EXPECT_EQ(chat.messages[0].role, "system");
  EXPECT_EQ(chat.template_hints["enable_thinking"], false);
}

TEST_F(Ollama, StreamsAreLinesOfJson) {
  const auto answer = call("POST", "/api/chat",
                           R"({"model":"fake","messages":[{"role":"user","content":"a b c"}]})");
  EXPECT_EQ(answer->response.content_type, "application/x-ndjson");
  std::string text, line;
  std::istringstream lines(answer->stream);
  Json last;
  while (std::getline(lines, line)) {
    last = Json::parse(line);
    text += last["message"]["content"];
  }
  EXPECT_EQ(text, "a b c");
  EXPECT_EQ(last["done"], true);
  EXPECT_EQ(last["done_reason"], "stop");
}

TEST_F(Ollama, ErrorsAreTexts) {
  const auto answer =
      call("POST", "/api/chat", R"({"model":"none","messages":[{"role":"user","content":"a"}]})");
  EXPECT_EQ(answer->response.status, 404);
  EXPECT_TRUE(Json::parse(answer->response.body)["error"].is_string());
  options_.api_keys = {"secret"};
  service_.reset();
  for (const auto& refused : {call("POST", "/api/pull", "{}"), call("GET", "/api/chat"),
                              call("POST", "/api/chat", "x", {{"Content-Type", "text/plain"}}),
                              call("POST", "/api/chat", "{}")})
    EXPECT_TRUE(Json::parse(refused->response.body)["error"].is_string()) << refused->response.body;
}

}  // namespace
}  // namespace valora::server
