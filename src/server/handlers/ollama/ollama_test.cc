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

TEST_F(Ollama, CallsHaveArgumentsAsObjects) {
  const Json answer =
      post("/api/chat", R"({"model":"fake","stream":false,"messages":[{"role":"user",
      "content":"<tool_call>{\"name\": \"look\", \"arguments\": {\"at\": \"a b\"}}</tool_call>"}],
      "tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object",
      "properties":{"at":{"type":"string"}}}}}]})");
  EXPECT_EQ(answer["message"]["content"], "");
  EXPECT_EQ(answer["message"]["tool_calls"],
            Json::parse(R"([{"function": {"name": "look", "arguments": {"at": "a b"}}}])"));
  EXPECT_EQ(answer["done"], true);
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
}

}  // namespace
}  // namespace valora::server
