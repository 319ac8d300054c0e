// With n > 1 or several prompts, every choice gets its answer.
#include <thread>

#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::FakeExchange;
using testing::Handlers;
using ::testing::HasSubstr;

// The texts and finish reasons of a stream's choices, by index.
struct StreamedChoice {
  std::string text;
  int roles = 0;
  std::vector<std::string> finishes;
};

std::vector<StreamedChoice> choices_of(const FakeExchange& exchange, size_t count) {
  std::vector<StreamedChoice> choices(count);
  for (const Json& event : exchange.events())
    for (const Json& choice : event["choices"]) {
      StreamedChoice& out = choices.at(choice["index"].get<size_t>());
      if (choice.contains("delta")) {
        out.text += choice["delta"]["content"].get<std::string>();
        out.roles += choice["delta"].contains("role");
      } else {
        out.text += choice["text"].get<std::string>();
      }
      if (!choice["finish_reason"].is_null())
        out.finishes.push_back(choice["finish_reason"].get<std::string>());
    }
  return choices;
}

TEST_F(Handlers, TaskHeadRepeatsTheLabelInEveryChoice) {
  const Json answer = chat("x", R"("model":"birds","head":"species","n":3)")->json();
  ASSERT_EQ(answer["choices"].size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    EXPECT_EQ(answer["choices"][i]["message"]["content"], "dog");
    EXPECT_EQ(answer["choices"][i]["finish_reason"], "stop");
  }
}

TEST_F(Handlers, TaskHeadRepeatsTheLabelForEveryPrompt) {
  const std::string body = R"("model":"birds","head":"species","prompt":["a","b","c"],"n":2)";
  const Json answer = call("POST", "/v1/completions", "{" + body + "}")->json();
  ASSERT_EQ(answer["choices"].size(), 6u);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    EXPECT_EQ(answer["choices"][i]["text"], "dog");
  }
  const auto stream = call("POST", "/v1/completions", "{" + body + R"(,"stream":true})");
  for (const StreamedChoice& choice : choices_of(*stream, 6)) {
    EXPECT_EQ(choice.text, "dog");
    EXPECT_EQ(choice.finishes, std::vector<std::string>{"stop"});
  }
}

TEST_F(Handlers, IterationTokensCountFirstTokenOfEachSequence) {
  call("GET", "/health");  // creates the service
  engine_.set_observer(&service_->metrics);
  chat("a b c", R"("n":2)");
  const std::string name = "vllm:iteration_tokens_total_";
  const std::string labels = R"({engine="0",model_name="fake"} )";
  // The last step is reported after the answer has been sent.
  for (int i = 0; i < 5000; ++i) {
    if (service_->metrics.text().find(name + "count" + labels + "3\n") != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  engine_.set_observer(nullptr);
  // The fake engine reports one token per request and step: three tokens, plus two first tokens.
  EXPECT_THAT(service_->metrics.text(), HasSubstr(name + "sum" + labels + "5\n"));
}

TEST_F(Handlers, TaskHeadStreamCoversEveryIndex) {
  const auto stream = chat("x", R"("model":"birds","head":"species","n":3,"stream":true)");
  for (const StreamedChoice& choice : choices_of(*stream, 3)) {
    EXPECT_EQ(choice.text, "dog");
    EXPECT_EQ(choice.roles, 1);
    EXPECT_EQ(choice.finishes, std::vector<std::string>{"stop"});
  }
}

TEST_F(Handlers, WaitingChoicesAreNTimesThePrompts) {
  options_.max_waiting = 4;
  engine_.hold_requests(true);
  const auto first = begin("POST", "/v1/chat/completions", chat_body("x", R"("n":3)"));
  const auto full = call("POST", "/v1/completions", R"({"prompt":["a","b"]})");
  EXPECT_EQ(full->response.status, 429);
  EXPECT_EQ(full->json()["error"]["type"], "RateLimitError");
  EXPECT_EQ(chat("x", R"("n":2)")->response.status, 429);
  const auto second = begin("POST", "/v1/chat/completions", chat_body("x", ""));
  EXPECT_EQ(chat("x")->response.status, 429);
  engine_.hold_requests(false);
  first->run();
  second->run();
  // An empty queue accepts a request of any size.
  EXPECT_EQ(call("POST", "/v1/completions", R"({"prompt":["a","b"],"n":4})")->response.status, 200);
  EXPECT_EQ(chat("x")->response.status, 200);
}

TEST(WaitingChoices, OneClientCannotFillTheSharedQueue) {
  WaitingChoices waiting(100);
  ASSERT_TRUE(waiting.take("greedy", 60));
  EXPECT_FALSE(waiting.take("greedy", 41));
  ASSERT_TRUE(waiting.take("greedy", 40));
  EXPECT_TRUE(waiting.take("quick", 1));
  EXPECT_FALSE(waiting.take("quick", 1)) << "something of it waits already";
  EXPECT_TRUE(waiting.take("large", 99));
  EXPECT_FALSE(waiting.take("late", 1)) << "twice the limit";
  waiting.give_back("quick", 1);
  EXPECT_TRUE(waiting.take("late", 1));
  waiting.give_back("greedy", 60);
  waiting.give_back("large", 99);
  EXPECT_TRUE(waiting.take("greedy", 59));
  EXPECT_FALSE(waiting.take("greedy", 1));
}

TEST_F(Handlers, RefusedRequestNoLongerCountsAsWaiting) {
  options_.max_waiting = 1;
  EXPECT_EQ(chat("x", R"("model":"nobody","n":5)")->response.status, 404);
  engine_.hold_requests(true);
  const auto next = begin("POST", "/v1/chat/completions", chat_body("x", ""));
  EXPECT_EQ(chat("x")->response.status, 429);
  engine_.hold_requests(false);
  next->run();
  EXPECT_EQ(next->response.status, 200);
}

TEST_F(Handlers, UnfinishedChoiceIsAnErrorNotAnEmptyAnswer) {
  const auto whole = chat("!unfinished", R"("n":2)");
  EXPECT_EQ(whole->response.status, 500);
  EXPECT_THAT(whole->response.body, HasSubstr("before all of its choices"));
  const auto events = chat("!unfinished", R"("n":2,"stream":true)")->events();
  ASSERT_FALSE(events.empty());
  ASSERT_TRUE(events.back().contains("error"));
  EXPECT_EQ(events.back()["error"]["code"], 500);
}

TEST_F(Handlers, PromptsOfARequestAreAGroup) {
  call("POST", "/v1/completions", R"({"prompt":["a","b"],"max_tokens":1})");
  call("POST", "/v1/completions", R"({"prompt":["c","d"],"max_tokens":1})");
  chat("e");
  const auto requests = engine_.requests();
  ASSERT_EQ(requests.size(), 5);
  ASSERT_TRUE(requests[0].group);
  EXPECT_EQ(requests[0].group, requests[1].group);
  ASSERT_TRUE(requests[2].group);
  EXPECT_EQ(requests[2].group, requests[3].group);
  EXPECT_NE(requests[0].group, requests[2].group);
  EXPECT_FALSE(requests[4].group);
}

}  // namespace
}  // namespace valora::server
