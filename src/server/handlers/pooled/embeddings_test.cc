#include "base/json/json.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;

TEST_F(Handlers, EmbeddingsAreNormalisedByDefault) {
  const Json answer =
      call("POST", "/v1/embeddings", R"({"model":"lens","input":["abc","d"]})")->json();
  EXPECT_EQ(answer["object"], "list");
  EXPECT_EQ(answer["model"], "lens");
  ASSERT_EQ(answer["data"].size(), 2u);
  EXPECT_EQ(answer["data"][1]["index"], 1);
  EXPECT_EQ(answer["data"][1]["object"], "embedding");
  const auto values = answer["data"][0]["embedding"].get<std::vector<float>>();
  ASSERT_EQ(values.size(), 3u);
  EXPECT_FLOAT_EQ(values[0], 1.0f / 3);
  EXPECT_FLOAT_EQ(values[1], -2.0f / 3);
  EXPECT_EQ(engine_.requests().back().task, Task::kEmbed);
  EXPECT_EQ(engine_.requests().back().adapters.at(0).name, "lens");
  const Json raw = call("POST", "/v1/embeddings", R"({"input":"abc","normalize":false})")->json();
  EXPECT_EQ(raw["data"][0]["embedding"], Json::array({3.0, -6.0, 6.0}));
}

TEST_F(Handlers, EmbeddingsInBase64AreLittleEndianFloats) {
  const Json answer = call("POST", "/v1/embeddings",
                           R"({"input":"a","normalize":false,"encoding_format":"base64"})")
                          ->json();
  EXPECT_EQ(answer["data"][0]["embedding"], "AACAPwAAAMAAAABA");  // 1, -2, 2
}

TEST_F(Handlers, EmbeddingsAcceptConversationsWithPictures) {
  const auto answer = call("POST", "/v1/embeddings",
                           R"({"messages":[{"role":"user","content":[{"image_url":"data:x"}]}]})");
  EXPECT_EQ(answer->response.status, 200);
  EXPECT_EQ(std::get<ChatPrompt>(engine_.requests().back().prompt).messages[0].parts.size(), 1u);
}

TEST_F(Handlers, EmbeddingsHaveTheModelsOwnSizeAlone) {
  EXPECT_EQ(call("POST", "/v1/embeddings", R"({"input":"x","dimensions":3})")->response.status,
            200);
  const auto refused = call("POST", "/v1/embeddings", R"({"input":"x","dimensions":2})");
  EXPECT_EQ(refused->response.status, 400);
  EXPECT_NE(refused->json()["error"]["message"].get<std::string>().find("have 3 numbers"),
            std::string::npos);
}

TEST_F(Handlers, SpecialTokensOfConversationsAreThoseOfTheTemplate) {
  for (const char* path : {"/classify", "/v1/chat/completions"}) {
    const auto status = [&](const std::string& fields) {
      const auto answer = call("POST", path, R"({"model":"birds",)" + fields + "}");
      if (answer->response.status != 200)
        EXPECT_EQ(answer->json()["error"]["param"], "add_special_tokens");
      return answer->response.status;
    };
    const std::string chat = R"("messages":[{"role":"user","content":"x"}],"add_special_tokens":)";
    EXPECT_EQ(status(chat + "false"), 200) << path;
    EXPECT_EQ(status(chat + "true"), 400) << path;
    if (path == std::string("/v1/chat/completions")) continue;
    EXPECT_EQ(status(R"("input":"x","add_special_tokens":true)"), 200) << path;
    EXPECT_EQ(status(R"("input":"x","add_special_tokens":false)"), 400) << path;
  }
}

TEST_F(Handlers, EmbeddingsTakePicturesAsInputs) {
  const auto answer = call(
      "POST", "/v1/embeddings",
      R"({"instruction":"Find it.","add_special_tokens":true,"input":["text","data:image/png;base64,AA==",
          {"text":"a","image":"data:b"},{"content":[{"type":"text","text":"c"}]}]})");
  ASSERT_EQ(answer->response.status, 200) << answer->response.body;
  EXPECT_EQ(answer->json()["data"].size(), 4u);
  const auto requests = engine_.requests();
  const auto chat = [&](size_t i) {
    return std::get<ChatPrompt>(requests[requests.size() - 4 + i].prompt);
  };
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(chat(i).add_special_tokens && chat(i).add_generation_prompt.value());
    EXPECT_EQ(chat(i).messages.at(0).role, "system");
    EXPECT_EQ(std::get<std::string>(chat(i).messages[0].parts.at(0)), "Find it.");
  }
  EXPECT_EQ(std::get<std::string>(chat(0).messages.at(1).parts.at(0)), "text");
  EXPECT_EQ(std::get<MediaRef>(chat(1).messages.at(1).parts.at(0)).url,
            "data:image/png;base64,AA==");
  EXPECT_EQ(std::get<MediaRef>(chat(2).messages.at(1).parts.at(0)).url, "data:b");
  EXPECT_EQ(std::get<std::string>(chat(2).messages.at(1).parts.at(1)), "a");
}

TEST_F(Handlers, EmbeddingsOfTextsCanLeaveOutSpecialTokens) {
  call("POST", "/v1/embeddings", R"({"input":"ab"})");
  EXPECT_TRUE(std::holds_alternative<std::string>(engine_.requests().back().prompt));
  call("POST", "/v1/embeddings", R"({"input":"ab","add_special_tokens":false})");
  EXPECT_TRUE(std::holds_alternative<std::vector<int32_t>>(engine_.requests().back().prompt));
}

TEST_F(Handlers, EmbeddingsNameUnsupportedFields) {
  for (const auto& [fields, param] :
       {std::pair{R"("input":"x","dimensions":2)", "dimensions"},
        std::pair{R"("input":"x","encoding_format":"int8")", "encoding_format"},
        std::pair{R"("model":"fake")", "input"},
        std::pair{R"("input":[{"video":"x"}])", "input[0]"},
        std::pair{R"("input":"x","prompt_name":"query")", "prompt_name"},
        std::pair{R"("input":"x","mm_processor_kwargs":{"max_pixels":4})", "mm_processor_kwargs"},
        std::pair{R"("messages":[{"role":"user","content":"x"}],"instruction":"a")", "instruction"},
        std::pair{R"("input":"x","truncation_side":"right")", "truncation_side"}}) {
    const auto refused = call("POST", "/v1/embeddings", std::string("{") + fields + "}");
    EXPECT_EQ(refused->response.status, 400) << fields;
    EXPECT_EQ(refused->json()["error"]["param"], param);
  }
}

}  // namespace
}  // namespace valora::server
