#include "serving/sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace valora::serving {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

SamplingSettings greedy() { return {.temperature = 0}; }

int32_t pick(Sampler& sampler, std::vector<float> logits, std::vector<int32_t> forbidden = {}) {
  const auto token = sampler.sample(logits, forbidden);
  EXPECT_TRUE(token.ok()) << token.error().message;
  return token.ok() ? token->id : -1;
}

// The logits as modified by the first sample() after `generated`.
std::vector<float> changed(const SamplingSettings& settings, std::vector<int32_t> prompt,
                           const std::vector<int32_t>& generated, std::vector<float> logits) {
  Sampler sampler(settings, prompt);
  for (const int32_t id : generated) {
    std::vector<float> only(logits.size(), -kInf);
    only[id] = 0;
    EXPECT_TRUE(sampler.sample(only, {}).ok());
  }
  EXPECT_TRUE(sampler.sample(logits, {}).ok());
  return logits;
}

// The set of tokens in 3000 draws.
std::set<int32_t> support(const SamplingSettings& settings, const std::vector<float>& logits) {
  Sampler sampler(settings, {});
  std::set<int32_t> seen;
  for (int i = 0; i < 3000; ++i) seen.insert(pick(sampler, logits));
  return seen;
}

TEST(Sampler, GreedyBreaksTiesByLowestId) {
  Sampler sampler(greedy(), {});
  EXPECT_EQ(pick(sampler, {1, 3, 2}), 1);
  EXPECT_EQ(pick(sampler, {1, 3, 3, 3}), 1);
  EXPECT_EQ(pick(sampler, {-kInf, -5, -kInf}), 1);
}

TEST(Sampler, OnlyAllowedTokensAreChosen) {
  auto settings = greedy();
  settings.allowed = {0b101};  // 40 tokens in total
  std::vector<float> logits(40, 5);
  logits[2] = 6;
  Sampler sampler(settings, {});
  EXPECT_EQ(pick(sampler, logits), 2);
  EXPECT_EQ(pick(sampler, logits, {2}), 0);
  const auto none = sampler.sample(logits, std::vector<int32_t>{0, 2});
  EXPECT_EQ(none.error().code, ErrorCode::kUnprocessable);
}

TEST(Sampler, BadWordsAreNotCompleted) {
  auto settings = greedy();
  settings.bad_words = {{3}, {1, 2}};
  Sampler sampler(settings, std::vector<int32_t>{1});
  EXPECT_EQ(pick(sampler, {0, 1, 2, 9}), 2) << "the prompt does not count towards a bad word";
  EXPECT_EQ(pick(sampler, {0, 5, 2, 9}), 1);
  EXPECT_EQ(pick(sampler, {0, 1, 2, 9}), 1) << "2 would complete a word";
  EXPECT_EQ(pick(sampler, {0, 0, 2, 9}), 0);
  EXPECT_EQ(pick(sampler, {0, 0, 2, 9}), 2);
}

TEST(Sampler, PenaltiesMatchHandComputedValues) {
  auto settings = greedy();
  settings.repetition_penalty = 2;
  EXPECT_EQ(changed(settings, {0, 1, 1, 99}, {3}, {4, -4, 5, 6, -6}),
            (std::vector<float>{2, -8, 5, 3, -6}));
  EXPECT_EQ(changed(settings, {0, 1}, {0, 3, 3}, {4, -4, 5, 6}), (std::vector<float>{2, -8, 5, 3}))
      << "a token of the prompt and the answer counts once";
  settings = greedy();
  settings.presence_penalty = 0.5;
  EXPECT_EQ(changed(settings, {0}, {3, 3}, {4, -4, 5, 6}), (std::vector<float>{4, -4, 5, 5.5}));
  settings.frequency_penalty = 1.5;
  EXPECT_EQ(changed(settings, {0}, {3, 3, 1}, {4, -4, 5, 6}), (std::vector<float>{4, -6, 5, 2.5}));
  settings = greedy();
  settings.logit_bias = {{2, -3}, {0, 10}};
  EXPECT_EQ(changed(settings, {}, {}, {4, -4, 5}), (std::vector<float>{14, -4, 2}));
  settings.repetition_penalty = 2;
  EXPECT_EQ(changed(settings, {2}, {}, {4, -4, 5}), (std::vector<float>{14, -4, 1}))
      << "the bias comes first";
}

TEST(Sampler, ForbiddenTokensAreNeverChosen) {
  Sampler sampler(greedy(), {});
  EXPECT_EQ(pick(sampler, {1, 9, 3}, {1, -5, 70}), 2);
  std::vector<float> logits{1, -kInf};
  const std::vector<int32_t> all{0};
  EXPECT_FALSE(sampler.sample(logits, all).ok());
  EXPECT_EQ(support({}, {0, -kInf, 0}), (std::set<int32_t>{0, 2}));
}

TEST(Sampler, NanIsAnError) {
  Sampler sampler(greedy(), {});
  for (const float bad : {NAN, kInf}) {
    std::vector<float> logits{1, bad, 3};
    const auto token = sampler.sample(logits, {});
    ASSERT_FALSE(token.ok());
    EXPECT_EQ(token.error().code, ErrorCode::kInternal);
  }
}

TEST(Sampler, TopKTopPAndMinPKeepDefinedSets) {
  // Probabilities .1 .4 .2 .25 .05
  std::vector<float> logits;
  for (const double p : {0.1, 0.4, 0.2, 0.25, 0.05})
    logits.push_back(static_cast<float>(std::log(p)));
  EXPECT_EQ(support({}, logits).size(), 5);
  EXPECT_EQ(support({.top_k = 1}, logits), (std::set<int32_t>{1}));
  EXPECT_EQ(support({.top_k = 3}, logits), (std::set<int32_t>{1, 2, 3}));
  EXPECT_EQ(support({.top_k = 9}, logits).size(), 5);
  EXPECT_EQ(support({.top_p = 0}, logits), (std::set<int32_t>{1})) << "the most likely one";
  EXPECT_EQ(support({.top_p = 0.39}, logits), (std::set<int32_t>{1}));
  EXPECT_EQ(support({.top_p = 0.64}, logits), (std::set<int32_t>{1, 3}));
  EXPECT_EQ(support({.top_p = 0.66}, logits), (std::set<int32_t>{1, 2, 3}));
  EXPECT_EQ(support({.min_p = 0.3}, logits), (std::set<int32_t>{1, 2, 3}));
  EXPECT_EQ(support({.min_p = 1}, logits), (std::set<int32_t>{1}));
  // The best two, renormalised to .615 and .385
  EXPECT_EQ(support({.top_p = 0.61, .top_k = 2}, logits), (std::set<int32_t>{1}));
  EXPECT_EQ(support({.top_p = 0.63, .top_k = 2}, logits), (std::set<int32_t>{1, 3}));
  EXPECT_EQ(support({.temperature = 1e-4}, logits), (std::set<int32_t>{1})) << "almost greedy";
  EXPECT_EQ(support({.temperature = 1e-5}, {3e38f, -3e38f, 1}), (std::set<int32_t>{0}))
      << "no overflow";
}

TEST(Sampler, TheNucleusReachesBehindItsFirstChunk) {
  std::vector<float> logits(500, 0);
  EXPECT_EQ(support({.top_p = 0.3}, logits).size(), 150);
  EXPECT_EQ(*support({.top_p = 0.3}, logits).rbegin(), 149) << "equal ones by id";
}

TEST(Sampler, DrawsByProbabilityUnderTheTemperature) {
  const int draws = 40000;
  for (const double temperature : {0.5, 1.0, 2.0}) {
    const std::vector<float> logits{0, 1, -1, 0.5f};
    Sampler sampler({.temperature = temperature, .seed = 7}, {});
    std::map<int32_t, int> counts;
    for (int i = 0; i < draws; ++i) ++counts[pick(sampler, logits)];
    double total = 0;
    for (const float logit : logits) total += std::exp(logit / temperature);
    for (int i = 0; i < 4; ++i) {
      const double p = std::exp(logits[i] / temperature) / total;
      EXPECT_NEAR(counts[i], draws * p, 5 * std::sqrt(draws * p * (1 - p)))
          << temperature << ' ' << i;
    }
  }
}

TEST(Sampler, ASeedGivesTheSameDraws) {
  const std::vector<float> logits(50, 0);
  const auto draws = [&](uint64_t seed) {
    Sampler sampler({.seed = seed}, {});
    std::vector<int32_t> ids;
    for (int i = 0; i < 20; ++i) ids.push_back(pick(sampler, logits));
    return ids;
  };
  EXPECT_EQ(draws(5), draws(5));
  EXPECT_NE(draws(5), draws(6));
  EXPECT_NE(draws(0), draws(UINT64_MAX));
}

TEST(Sampler, LogprobsIgnoreSamplingSettings) {
  auto settings = greedy();
  settings.top_logprobs = 2;
  settings.logit_bias = {{0, 100}};
  settings.repetition_penalty = 3;
  Sampler sampler(settings, std::vector<int32_t>{1});
  std::vector<float> logits{1, 3, 2, 3};
  const double normaliser = std::log(std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0));
  const auto token = sampler.sample(logits, {});
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->id, 0);
  EXPECT_NEAR(token->logprob, 1 - normaliser, 1e-6);
  ASSERT_EQ(token->top.size(), 2);
  EXPECT_EQ(token->top[0].id, 1);
  EXPECT_EQ(token->top[1].id, 3);
  EXPECT_NEAR(token->top[0].logprob, 3 - normaliser, 1e-6);

  settings.top_logprobs = 0;
  Sampler chosen_only(settings, {});
  logits = {1, 3, 2, 3};
  const auto alone = chosen_only.sample(logits, {});
  EXPECT_TRUE(alone->top.empty());
  EXPECT_NEAR(alone->logprob, 1 - normaliser, 1e-6);
  Sampler none(greedy(), {});
  logits = {1, 3};
  EXPECT_EQ(none.sample(logits, {})->logprob, 0);
}

TEST(Sampler, NamedTokensAreReportedInTheirOrder) {
  auto settings = greedy();
  settings.reported = {2, 0};
  settings.top_logprobs = 0;
  std::vector<float> logits = {1, 3, 2};
  Sampler sampler(settings, {});
  const auto token = sampler.sample(logits, {});
  ASSERT_TRUE(token.ok());
  ASSERT_EQ(token->top.size(), 2u);
  EXPECT_EQ(token->top[0].id, 2);
  EXPECT_NEAR(token->top[0].logprob - token->top[1].logprob, 1, 1e-6);
  EXPECT_NEAR(token->logprob - token->top[0].logprob, 1, 1e-6);
  settings.reported = {3};
  EXPECT_EQ(Sampler(settings, {}).sample(logits, {}).error().code, ErrorCode::kUnprocessable);
}

TEST(Sampler, OnlyAllowedTokensAreChosenAndCounted) {
  auto settings = greedy();
  settings.top_logprobs = 3;
  Sampler sampler(settings, {});
  std::vector<float> logits(70, 9);
  logits[1] = 2;
  logits[65] = 3;
  const std::vector<uint32_t> allowed{2, 0, 2};
  const auto token = sampler.sample(logits, {}, allowed);
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->id, 65);
  const double normaliser = std::log(std::exp(2.0) + std::exp(3.0));
  EXPECT_NEAR(token->logprob, 3 - normaliser, 1e-6);
  ASSERT_EQ(token->top.size(), 2) << "no token without a probability";
  EXPECT_EQ(token->top[1].id, 1);
  EXPECT_NEAR(token->top[1].logprob, 2 - normaliser, 1e-6);
}

TEST(Sampler, TokensBeyondTheMaskAreNotAllowed) {
  Sampler sampler(greedy(), {});
  std::vector<float> logits(40, 1);
  logits[35] = 5;
  EXPECT_EQ(sampler.sample(logits, {}, std::vector<uint32_t>{4})->id, 2);
  logits.assign(40, 1);
  EXPECT_FALSE(sampler.sample(logits, {}, std::vector<uint32_t>{0}).ok());
}

// A placeholder of pictures may have no row in the output layer.
TEST(ScoreToken, TokenBeyondTheVocabularyHasNoProbability) {
  const std::vector<float> logits{1, 3, 2};
  const auto scored = score_token(logits, 3, 1);
  ASSERT_TRUE(scored.ok());
  EXPECT_EQ(scored->token.logprob, -kInf);
  EXPECT_EQ(scored->rank, 4);
  ASSERT_EQ(scored->top.size(), 1u);
  EXPECT_EQ(scored->top[0].id, 1);
}

}  // namespace
}  // namespace valora::serving
