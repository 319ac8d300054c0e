// Log probabilities of the prompt's tokens, and of the labels of task heads.
#include <algorithm>
#include <cmath>

#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;
using ::testing::HasSubstr;

class PromptLogprobs : public Handlers {
 protected:
  std::shared_ptr<testing::FakeExchange> complete(const std::string& fields) {
    return call("POST", "/v1/completions", R"({"prompt":"one two three")" + fields + "}");
  }
};

TEST_F(PromptLogprobs, ChatReturnsThemAtTopLevel) {
  const Json answer = chat("one two three", R"("prompt_logprobs":1,"n":2)")->json();
  EXPECT_EQ(engine_.requests().back().sampling.prompt_logprobs, 1);
  const Json& prompt = answer["prompt_logprobs"];
  ASSERT_EQ(prompt.size(), 3u);
  EXPECT_TRUE(prompt[0].is_null());
  ASSERT_EQ(prompt[2].size(), 2u);
  EXPECT_EQ(prompt[2]["1000"], Json({{"logprob", -0.5}, {"rank", 1}, {"decoded_token", "top0"}}));
  const auto own = std::find_if(prompt[2].begin(), prompt[2].end(), [](const Json& entry) {
    return entry["decoded_token"] == " three";
  });
  ASSERT_NE(own, prompt[2].end());
  EXPECT_EQ((*own)["logprob"], -2.0);
  EXPECT_EQ((*own)["rank"], 2);
  EXPECT_FALSE(chat("one two three")->json().contains("prompt_logprobs"));
}

TEST_F(PromptLogprobs, CompletionReturnsThemInEveryChoice) {
  const Json choices = complete(R"(,"prompt_logprobs":0,"n":2)")->json()["choices"];
  for (const Json& choice : choices) {
    ASSERT_EQ(choice["prompt_logprobs"].size(), 3u);
    EXPECT_EQ(choice["prompt_logprobs"][1].size(), 1u);
    EXPECT_TRUE(choice["logprobs"].is_null());
  }
}

TEST_F(PromptLogprobs, EchoPrependsThemToTheLogprobs) {
  const Json choice =
      complete(R"(,"echo":true,"logprobs":1,"return_token_ids":true)")->json()["choices"][0];
  const Json& logprobs = choice["logprobs"];
  EXPECT_EQ(choice["text"], "one two threeone two three");
  EXPECT_EQ(logprobs["tokens"], Json({"one", " two", " three", "one", " two", " three"}));
  EXPECT_EQ(logprobs["token_logprobs"], Json({nullptr, -1.0, -2.0, -0.5, -0.5, -0.5}));
  EXPECT_EQ(logprobs["text_offset"], Json({0, 3, 7, 13, 16, 20}));
  EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
  EXPECT_EQ(logprobs["top_logprobs"][1], Json({{"top0", -0.5}, {" two", -1.0}}));
  EXPECT_EQ(choice["token_ids"].size(), 3u);
  EXPECT_FALSE(choice.contains("prompt_logprobs"));
}

TEST_F(PromptLogprobs, StreamedEchoBeginsWithThem) {
  const auto events = complete(R"(,"echo":true,"logprobs":0,"stream":true)")->events();
  const Json& first = events.at(0)["choices"][0];
  EXPECT_EQ(first["text"], "one two threeone");
  EXPECT_EQ(first["logprobs"]["tokens"], Json({"one", " two", " three", "one"}));
  EXPECT_EQ(events.at(1)["choices"][0]["logprobs"]["text_offset"], Json({16}));
}

TEST_F(PromptLogprobs, EchoWithZeroMaxTokensReturnsOnlyThePrompt) {
  const std::string fields = R"(,"echo":true,"max_tokens":0,"logprobs":1)";
  const Json answer = complete(fields + R"(,"return_token_ids":true)")->json();
  EXPECT_EQ(engine_.requests().back().sampling.max_tokens, 0);
  const Json& choice = answer["choices"][0];
  EXPECT_EQ(choice["text"], "one two three");
  EXPECT_EQ(choice["logprobs"]["token_logprobs"], Json({nullptr, -1.0, -2.0}));
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_TRUE(choice["token_ids"].empty());
  EXPECT_EQ(choice["prompt_token_ids"].size(), 3u);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 0);
  EXPECT_EQ(answer["usage"]["total_tokens"], 3);
  const auto events = complete(fields + R"(,"stream":true)")->events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["choices"][0]["text"], "one two three");
  EXPECT_EQ(events[0]["choices"][0]["logprobs"]["tokens"].size(), 3u);
  EXPECT_EQ(events[0]["choices"][0]["finish_reason"], "length");
  const Json plain = complete(R"(,"echo":true,"max_tokens":0)")->json()["choices"][0];
  EXPECT_EQ(plain["text"], "one two three");
  EXPECT_TRUE(plain["logprobs"].is_null());
}

TEST_F(PromptLogprobs, ZeroMaxTokensRequiresEcho) {
  for (const char* fields : {R"(,"max_tokens":0)", R"(,"max_tokens":0,"echo":false)",
                             R"(,"max_tokens":-1,"echo":true)"}) {
    const auto refused = complete(fields);
    EXPECT_EQ(refused->response.status, 400) << fields;
    EXPECT_EQ(refused->json()["error"]["param"], "max_tokens") << fields;
  }
  EXPECT_EQ(chat("x", R"("max_tokens":0)")->response.status, 400);
}

TEST_F(PromptLogprobs, UseTokenIdsAsNamesOnRequest) {
  const Json logprobs = complete(R"(,"echo":true,"logprobs":0,"return_tokens_as_token_ids":true)")
                            ->json()["choices"][0]["logprobs"];
  for (const Json& token : logprobs["tokens"])
    EXPECT_THAT(token.get<std::string>(), HasSubstr("token_id:"));
}

TEST_F(PromptLogprobs, OutOfRangeValuesAreRefused) {
  const auto refused = [&](const std::string& fields, const char* param) {
    const auto answer = complete(fields);
    EXPECT_EQ(answer->response.status, 400) << fields;
    EXPECT_EQ(answer->json()["error"]["param"], param) << fields;
  };
  refused(R"(,"prompt_logprobs":21)", "prompt_logprobs");
  refused(R"(,"prompt_logprobs":-1)", "prompt_logprobs");
  refused(R"(,"prompt_logprobs":1,"stream":true)", "prompt_logprobs");
  EXPECT_EQ(chat("x", R"("logprobs":true,"top_logprobs":21)")->response.status, 400);
}

TEST_F(PromptLogprobs, ModelLimitBoundsLogprobs) {
  auto options = testing::echo_options();
  options.model.max_logprobs = 2;
  valora::testing::FakeEngine strict(options);
  service_ = std::make_shared<Service>(options_, strict);
  EXPECT_EQ(complete(R"(,"logprobs":2)")->response.status, 200);
  EXPECT_EQ(complete(R"(,"logprobs":3)")->response.status, 400);
  service_.reset();
}

TEST_F(Handlers, LabelOfATaskHeadHasALogProbability) {
  const auto ask = [&](const std::string& fields) {
    return chat("x", R"("model":"birds","head":"species","logprobs":true)" + fields)
        ->json()["choices"][0];
  };
  const Json choice = ask(R"(,"top_logprobs":2)");
  EXPECT_EQ(choice["message"]["content"], "dog");
  const Json content = choice["logprobs"]["content"];
  ASSERT_EQ(content.size(), 1u);
  EXPECT_EQ(content[0]["token"], "dog");
  EXPECT_NEAR(content[0]["logprob"].get<double>(), std::log(0.625), 1e-6);
  ASSERT_EQ(content[0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(content[0]["top_logprobs"][0]["token"], "dog");
  EXPECT_EQ(content[0]["top_logprobs"][1]["token"], "owl");
  EXPECT_NEAR(content[0]["top_logprobs"][1]["logprob"].get<double>(), std::log(0.25), 1e-6);
  EXPECT_TRUE(ask("")["logprobs"]["content"][0]["top_logprobs"].empty());
  EXPECT_TRUE(
      chat("x", R"("model":"birds","head":"species")")->json()["choices"][0]["logprobs"].is_null());
}

}  // namespace
}  // namespace valora::server
