// All buffered answers share one budget.
#include "server/handlers/generation/answer_budget.h"

#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;
using ::testing::HasSubstr;

TEST(AnswerBudget, LargeAnswersLeaveMemoryForOthers) {
  AnswerBudget budget(1000);
  size_t first = 0;
  while (budget.take(first, 10)) first += 10;
  EXPECT_EQ(first, 500u) << "half is left to others";
  size_t second = 0;
  while (budget.take(second, 10)) second += 10;
  EXPECT_EQ(second, 250u);
  EXPECT_TRUE(budget.take(0, 100)) << "a small one";
  EXPECT_FALSE(budget.take(first, 1));
  EXPECT_FALSE(budget.take(0, SIZE_MAX));
  budget.give_back(first);
  EXPECT_TRUE(budget.take(second, 200));
}

class KeptAnswers : public Handlers {
 protected:
  KeptAnswers() { options_.max_unsent_answer_bytes = 50'000; }
};

TEST_F(KeptAnswers, OversizedAnswerIs503NamingTheRemedy) {
  std::string words = "x";
  for (int i = 0; i < 40; ++i) words += " word";
  const std::string many = R"("logprobs":true,"top_logprobs":20,"n":16)";
  const auto refused = chat(words, many);
  EXPECT_EQ(refused->response.status, 503);
  EXPECT_THAT(refused->response.body, HasSubstr("stream it"));
  EXPECT_EQ(chat(words, R"("n":16)")->response.status, 200) << "texts alone fit";
  EXPECT_EQ(chat("x", R"("logprobs":true,"top_logprobs":20)")->response.status, 200);
  EXPECT_THAT(chat(words, many + R"(,"stream":true)")->stream, HasSubstr("[DONE]"));
}

TEST_F(KeptAnswers, BudgetIsReleasedAfterTheAnswer) {
  std::string words = "x";
  for (int i = 0; i < 300; ++i) words += " word";
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(chat(words)->response.status, 200) << i;
    EXPECT_NE(chat("!fail " + words)->response.status, 200);
  }
}

TEST_F(KeptAnswers, PromptLogprobsCountAgainstTheBudget) {
  std::string words = "x";
  for (int i = 0; i < 20; ++i) words += " word";
  const auto complete = [&](const std::string& fields) {
    return call("POST", "/v1/completions", R"({"prompt":")" + words + "\"," + fields + "}")
        ->response.status;
  };
  EXPECT_EQ(complete(R"("prompt_logprobs":0)"), 200);
  EXPECT_EQ(complete(R"("prompt_logprobs":0,"n":16)"), 503) << "each choice has its own";
  EXPECT_EQ(complete(R"("echo":true,"logprobs":0,"n":16)"), 503);
  EXPECT_EQ(complete(R"("return_token_ids":true,"n":2)"), 200);
  EXPECT_EQ(complete(R"("return_token_ids":true,"n":64)"), 503);
}

}  // namespace
}  // namespace valora::server
