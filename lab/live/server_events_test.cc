#include "lab/live/server_events.h"

#include <gtest/gtest.h>

#include "base/json/json.h"

namespace valora::bench {
namespace {

GenerateRequest request_of(Prompt prompt) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.sampling.max_tokens = 3;
  request.sampling.temperature = 0;
  request.sampling.ignore_eos = true;
  return request;
}

TEST(ServerEvents, TokenIdsAreSentAsACompletion) {
  GenerateRequest request = request_of(std::vector<int32_t>{1, 2});
  request.adapters = {{"coins", 1}};
  request.priority = 2;
  const Question question = question_of(request, "base").value();
  EXPECT_EQ(question.path, "/v1/completions");
  EXPECT_EQ(Json::parse(question.body), Json::parse(R"({"model":"coins","prompt":[1,2],
    "max_tokens":3,"temperature":0.0,"ignore_eos":true,"stream":true,"return_token_ids":true,
    "priority":2})"));
}

TEST(ServerEvents, PicturesAreSentAsAChatToTheBase) {
  ChatPrompt chat;
  chat.messages.push_back(
      {.role = "user", .parts = {MediaRef{MediaRef::Kind::kImage, "data:x"}, "what"}});
  chat.messages.push_back({.role = "assistant", .parts = {"that"}});
  const Question question = question_of(request_of(chat), "base").value();
  EXPECT_EQ(question.path, "/v1/chat/completions");
  const Json body = Json::parse(question.body);
  EXPECT_EQ(body["model"], "base");
  EXPECT_EQ(body["messages"], Json::parse(R"([{"role":"user","content":[
    {"type":"image_url","image_url":{"url":"data:x"}},{"type":"text","text":"what"}]},
    {"role":"assistant","content":[{"type":"text","text":"that"}]}])"));
}

TEST(ServerEvents, UnsupportedRequestsAreRefused) {
  GenerateRequest request = request_of(std::vector<int32_t>{1});
  request.adapters = {{"a", 0.5F}};
  EXPECT_FALSE(question_of(request, "base").ok());
  request.adapters = {{"a", 1}, {"b", 1}};
  EXPECT_FALSE(question_of(request, "base").ok());
  EXPECT_FALSE(question_of(request_of("text"), "base").ok());
}

TEST(ServerEvents, EventsCarryTokensAndText) {
  const AnswerEvent completion =
      read_event(R"({"choices":[{"index":0,"text":"ab","token_ids":[7,8]}]})").value();
  EXPECT_EQ(completion.chunk.text, "ab");
  ASSERT_EQ(completion.chunk.tokens.size(), 2u);
  EXPECT_EQ(completion.chunk.tokens[1].chosen.id, 8);
  const AnswerEvent chat =
      read_event(R"({"choices":[{"delta":{"content":"c"},"token_ids":[9]}]})").value();
  EXPECT_EQ(chat.chunk.text, "c");
  EXPECT_EQ(chat.chunk.tokens.size(), 1u);
  EXPECT_FALSE(chat.last);
  for (const char* empty : {R"({"choices":[{"delta":{"role":"assistant"}}]})", R"({"choices":[]})",
                            R"({"choices":[{"text":"","finish_reason":"stop"}]})", "{}"})
    EXPECT_TRUE(read_event(empty).value().chunk.tokens.empty()) << empty;
  EXPECT_TRUE(read_event("[DONE]").value().last);
}

TEST(ServerEvents, MalformedAnswerIsAnError) {
  EXPECT_EQ(read_event(R"({"error":{"message":"broken"}})").error().message, "broken");
  EXPECT_FALSE(read_event("{").ok());
  EXPECT_FALSE(read_event("[1]").ok());
  EXPECT_FALSE(read_event(R"({"choices":[{"text":"ab"}]})").ok()) << "no token ids";
  EXPECT_EQ(refusal_error(404, R"({"error":{"message":"no model"}})").message,
            "HTTP 404: no model");
  EXPECT_EQ(refusal_error(502, "<html>").message, "HTTP 502: <html>");
}

}  // namespace
}  // namespace valora::bench
