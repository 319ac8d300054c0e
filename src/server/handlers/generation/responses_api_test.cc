#include "base/json/json.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;
using ::testing::HasSubstr;

const char* const kTool =
    R"("tools":[{"type":"function","name":"look","parameters":{"type":"object",
      "properties":{"z":{"type":"string"},"a":{"type":"string"}}},"strict":true}])";

class Responses : public Handlers {
 protected:
  std::shared_ptr<testing::FakeExchange> ask(const std::string& input,
                                             const std::string& fields = {}) {
    return call("POST", "/v1/responses",
                R"({"model":"fake","input":)" + input + (fields.empty() ? "" : "," + fields) + "}");
  }
  ChatPrompt prompt() { return std::get<ChatPrompt>(engine_.requests().back().prompt); }

  // The JSON of each event, after checking its name and sequence number.
  static std::vector<Json> events_of(const std::string& stream) {
    std::vector<Json> events;
    for (size_t at = 0; at < stream.size();) {
      const size_t end = stream.find("\n\n", at), data = stream.find("\ndata: ", at);
      events.push_back(Json::parse(stream.substr(data + 7, end - data - 7)));
      EXPECT_EQ(stream.substr(at, data - at), "event: " + events.back()["type"].get<std::string>());
      EXPECT_EQ(events.back()["sequence_number"], events.size() - 1);
      at = end + 2;
    }
    return events;
  }
};

TEST_F(Responses, StringInputIsAnswered) {
  const Json answer =
      ask(R"("two words")",
          R"("instructions":"Be brief.","max_output_tokens":9,"metadata":{"k":"v"})")
          ->json();
  EXPECT_EQ(answer["id"], "resp_ID");
  EXPECT_EQ(answer["object"], "response");
  EXPECT_EQ(answer["status"], "completed");
  EXPECT_EQ(answer["metadata"]["k"], "v");
  EXPECT_EQ(answer["instructions"], "Be brief.");
  ASSERT_EQ(answer["output"].size(), 1u);
  EXPECT_EQ(answer["output"][0]["type"], "message");
  EXPECT_EQ(answer["output"][0]["status"], "completed");
  EXPECT_EQ(answer["output"][0]["content"][0]["text"], "two words");
  EXPECT_EQ(answer["usage"]["output_tokens"], 2);
  EXPECT_EQ(engine_.requests().back().sampling.max_tokens, 9);
  ASSERT_EQ(prompt().messages.size(), 2u);
  EXPECT_EQ(prompt().messages[0].role, "system");
}

TEST_F(Responses, ItemsOfAllKindsAreRead) {
  ask(R"([{"role":"developer","content":"d"},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"a"},
      {"type":"input_image","image_url":"data:x","detail":"low"}]},
    {"type":"message","id":"msg_1","status":"completed","role":"assistant",
      "content":[{"type":"output_text","text":"I look.","annotations":[]}]},
    {"type":"function_call","id":"fc_1","call_id":"c1","name":"look","arguments":"{\"z\": 1}"},
    {"type":"function_call","call_id":"c2","name":"look","arguments":"{}"},
    {"type":"function_call_output","call_id":"c1","output":"a cat"},
    {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"b"}]}])",
      kTool);
  const ChatPrompt chat = prompt();
  ASSERT_EQ(chat.messages.size(), 5u);
  EXPECT_EQ(std::get<MediaRef>(chat.messages[1].parts[1]).url, "data:x");
  ASSERT_EQ(chat.messages[2].tool_calls.size(), 2u);
  EXPECT_EQ(chat.messages[2].tool_calls[0].arguments, R"({"z": 1})");
  EXPECT_EQ(chat.messages[3].tool_call_id, "c1");
  EXPECT_EQ(std::get<std::string>(chat.messages[4].parts[0]), "b");
  EXPECT_THAT(chat.tools, HasSubstr(R"("function":{"name":"look","parameters":{"type":"object",)"
                                    R"("properties":{"z")"));
}

TEST_F(Responses, ThoughtsBelongToTheAnswerBehindThem) {
  ask(R"([{"role":"user","content":"a"},
    {"type":"reasoning","id":"rs_1","summary":[],
      "content":[{"type":"reasoning_text","text":"hm"},{"type":"reasoning_text","text":"so"}]},
    {"role":"assistant","content":"b"},
    {"type":"reasoning","summary":[{"type":"summary_text","text":"look"}]},
    {"type":"function_call","call_id":"c1","name":"look","arguments":"{}"},
    {"type":"function_call_output","call_id":"c1","output":"a cat"},
    {"type":"reasoning","summary":[],"content":null},
    {"role":"assistant","content":"c"},
    {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"cut"}]},
    {"role":"user","content":"d"}])",
      kTool);
  const ChatPrompt chat = prompt();
  ASSERT_EQ(chat.messages.size(), 7u);
  EXPECT_EQ(chat.messages[1].thought, "hm\nso");
  EXPECT_EQ(std::get<std::string>(chat.messages[1].parts.at(0)), "b");
  EXPECT_EQ(chat.messages[2].thought, "look");
  EXPECT_EQ(chat.messages[2].tool_calls.size(), 1u);
  EXPECT_EQ(chat.messages[4].thought, std::nullopt);
  EXPECT_EQ(chat.messages[5].thought, "cut");
  EXPECT_TRUE(chat.messages[5].parts.empty());
  EXPECT_EQ(chat.messages[6].role, "user");
  for (const char* wrong :
       {R"({"type":"reasoning","summary":[],"encrypted_content":"x"})",
        R"({"type":"reasoning","summary":"x"})", R"({"type":"reasoning","content":[{"text":5}]})"})
    EXPECT_EQ(ask(std::string("[") + wrong + "]")->json()["error"]["param"], "input") << wrong;
}

TEST_F(Responses, SchemaConstrainsTheAnswer) {
  ask(R"("x")", R"("text":{"format":{"type":"json_schema","name":"n","strict":true,
    "schema":{"type":"object","properties":{"z":{},"a":{}}}}})");
  const auto constraint = engine_.requests().back().constraint;
  ASSERT_TRUE(constraint);
  EXPECT_EQ(constraint->param, "text");
  EXPECT_EQ(constraint->text, R"({"type":"object","properties":{"z":{},"a":{}}})");
}

TEST_F(Responses, ToolCallsAreOutputItems) {
  const std::string call =
      R"("Well. <tool_call>{\"name\": \"look\", \"arguments\": {\"z\": \"b\"}}</tool_call>")";
  const Json output = ask(call, kTool)->json()["output"];
  ASSERT_EQ(output.size(), 2u);
  EXPECT_EQ(output[0]["content"][0]["text"], "Well.");
  EXPECT_EQ(output[1]["type"], "function_call");
  EXPECT_EQ(output[1]["name"], "look");
  EXPECT_EQ(output[1]["arguments"], R"({"z": "b"})");
  EXPECT_EQ(output[1]["status"], "completed");

  std::string text, arguments;
  const std::vector<Json> events =
      events_of(ask(call, std::string(kTool) + R"(,"stream":true)")->stream);
  for (const Json& event : events) {
    if (event["type"] == "response.output_text.delta") text += event["delta"];
    if (event["type"] == "response.function_call_arguments.delta") {
      EXPECT_EQ(event["output_index"], 1);
      arguments += event["delta"];
    }
  }
  EXPECT_EQ(text, "Well.");
  EXPECT_EQ(arguments, R"({"z": "b"})");
  EXPECT_EQ(events.front()["type"], "response.created");
  EXPECT_EQ(events.back()["type"], "response.completed");
  EXPECT_EQ(events.back()["response"]["output"][1]["arguments"], R"({"z": "b"})");
}

TEST_F(Responses, MidStreamFailureIsAnEvent) {
  const std::vector<Json> events =
      events_of(ask(R"("!fail in the middle")", R"("stream":true)")->stream);
  EXPECT_EQ(events.back()["type"], "error");
  EXPECT_FALSE(events.back()["message"].get<std::string>().empty());
  EXPECT_EQ(ask(R"("!fail-now")", R"("stream":true)")->response.status, 400);
}

TEST_F(Responses, EveryConstraintOfChatIsAccepted) {
  const std::string schema =
      R"({"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}})";
  for (const std::string& fields :
       {R"("guided_json":)" + schema, R"("structured_outputs":{"json":)" + schema + "}"}) {
    EXPECT_EQ(ask(R"("x")", fields)->response.status, 200) << fields;
    ASSERT_TRUE(engine_.requests().back().constraint) << fields;
    EXPECT_EQ(engine_.requests().back().constraint->text, schema) << "in the client's order";
  }
  const auto hint = ask(R"("x")", R"("text":{"verbosity":"low"},
    "include":["reasoning.encrypted_content"])");
  EXPECT_EQ(hint->response.status, 200) << hint->response.body;
}

TEST_F(Responses, UnsupportedFieldIsNamed) {
  const std::vector<std::pair<std::string, std::string>> fields = {
      {R"("previous_response_id":"resp_1")", "previous_response_id"},
      {R"("background":true)", "background"},
      {R"("include":["message.output_text.logprobs"])", "include"},
      {R"("truncation":"auto")", "truncation"},
      {R"("text":{"format":{"type":"poem"}})", "text"},
      {R"("text":5)", "text"},
      {R"("text":{"verbosity":"loud"})", "text"},
      {R"("tools":[{"type":"web_search"}])", "tools"},
      {R"("max_output_tokens":0)", "max_output_tokens"},
      {R"("instructions":5)", "instructions"},
      {R"("n":2)", "n"},
      {R"("echo":true)", "echo"}};
  for (const auto& [field, param] : fields) {
    const auto refused = ask(R"("x")", field);
    EXPECT_EQ(refused->response.status, 400) << field;
    EXPECT_EQ(refused->json()["error"]["param"], param) << field;
  }
  for (const char* input :
       {"5", "[]", "[5]", R"([{"type":"item_reference","id":"x"}])", R"([{"content":"x"}])",
        R"([{"role":"user","content":[{"type":"input_file"}]}])",
        R"([{"role":"user","content":[{"type":"input_image","file_id":"f"}]}])",
        R"([{"type":"function_call","name":"f"}])", R"([{"role":"narrator","content":"x"}])"}) {
    const auto refused = ask(input);
    EXPECT_EQ(refused->response.status, 400) << input;
    EXPECT_EQ(refused->json()["error"]["param"], "input") << input;
  }
}

}  // namespace
}  // namespace valora::server
