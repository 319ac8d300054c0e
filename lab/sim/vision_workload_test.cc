#include "lab/sim/vision_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lab/sim/testing/gpu_costs.h"

namespace valora::sim {
namespace {

using ::testing::HasSubstr;

constexpr WorkloadConfig kFirst{.rate = 2,
                                .adapters = 4,
                                .seconds = 50,
                                .prompt_min = 8,
                                .prompt_max = 32,
                                .answer_min = 20,
                                .answer_max = 40};

TEST(Retrieval, AConversationAsksAboutOnePicture) {
  const auto arrivals = make_retrieval({.first = kFirst, .questions = 3, .think = 1});
  ASSERT_TRUE(arrivals.ok()) << arrivals.error().message;
  ASSERT_GT(arrivals->size(), 200u);
  ASSERT_EQ(arrivals->size() % 3, 0u);
  double thought = 0;
  for (size_t i = 0; i < arrivals->size(); ++i) {
    const Arrival& turn = (*arrivals)[i];
    if (i % 3 == 0) {
      EXPECT_EQ(turn.pictures, 1);
      EXPECT_EQ(turn.picture_tokens, 256);
      EXPECT_GE(turn.prompt.size(), 256u + 8);
      EXPECT_LE(turn.prompt.size(), 256u + 32);
      EXPECT_FALSE(turn.after || turn.previous);
      continue;
    }
    const Arrival& before = (*arrivals)[i - 1];
    EXPECT_EQ(turn.pictures, 0);
    EXPECT_EQ(turn.after, i - 1);
    EXPECT_EQ(turn.previous, i - 1);
    EXPECT_EQ(turn.adapter, before.adapter);
    const size_t said = before.prompt.size() + static_cast<size_t>(before.answer_tokens);
    ASSERT_GE(turn.prompt.size(), said + 8);
    EXPECT_TRUE(std::equal(before.prompt.begin(), before.prompt.end(), turn.prompt.begin()));
    thought += std::chrono::duration<double>(turn.at).count();
  }
  EXPECT_NEAR(thought / (static_cast<double>(arrivals->size()) * 2 / 3), 1, 0.2);
}

// The simulator finds earlier turns, including answers, in the prefix cache.
TEST(Retrieval, TheNextQuestionFindsTheConversationInTheCache) {
  const auto arrivals = make_retrieval({.first = kFirst, .questions = 2, .think = 0.5});
  const auto report =
      simulate({.pool = {.blocks = 20000}}, *arrivals,
               [](const scheduler::StepShape&) { return std::chrono::milliseconds(2); });
  ASSERT_TRUE(report.ok());
  for (size_t i = 1; i < arrivals->size(); i += 2) {
    const Arrival& before = (*arrivals)[i - 1];
    const int said = static_cast<int>(before.prompt.size()) + before.answer_tokens;
    EXPECT_GE(report->answers[i].cached_tokens, said - 2 * memory::kBlockTokens);
  }
}

TEST(Retrieval, ConversationEndsBeforeLengthLimit) {
  RetrievalConfig config{.first = kFirst, .questions = 100, .think = 0};
  config.first.max_tokens = 600;
  const auto arrivals = make_retrieval(config);
  size_t longest = 0;
  for (const Arrival& turn : *arrivals)
    longest = std::max(longest, turn.prompt.size() + static_cast<size_t>(turn.answer_tokens));
  EXPECT_LE(longest, 600u);
  EXPECT_GT(longest, 500u);
}

TEST(Retrieval, RefusesInvalidValuesByName) {
  for (const auto& [config, field] :
       {std::pair{RetrievalConfig{.questions = 0}, "questions"},
        std::pair{RetrievalConfig{.think = -1}, "think"},
        std::pair{RetrievalConfig{.picture_tokens = -1}, "picture_tokens"},
        std::pair{RetrievalConfig{.first = {.rate = 0}}, "rate"}})
    EXPECT_THAT(make_retrieval(config).error().message, HasSubstr(field));
}

TEST(Streams, EachStreamSendsOneChunkPerPeriod) {
  const auto arrivals = *make_streams({.streams = 7,
                                       .period = 2,
                                       .frames = 2,
                                       .frame_tokens = 100,
                                       .question_tokens = 69,
                                       .adapters = 3,
                                       .seconds = 20});
  EXPECT_TRUE(std::ranges::is_sorted(arrivals, {}, &Arrival::at));
  std::map<Duration, int> phases;
  std::map<int, int> requests;
  std::set<std::vector<int32_t>> prompts;
  for (const Arrival& arrival : arrivals) {
    ++phases[std::chrono::round<std::chrono::microseconds>(arrival.at) % std::chrono::seconds(2)];
    ++requests[arrival.adapter];
    prompts.insert(arrival.prompt);
    EXPECT_EQ(arrival.prompt.size(), 269u);
    EXPECT_EQ(arrival.pictures, 2);
    EXPECT_EQ(arrival.picture_tokens, 200);
    EXPECT_EQ(arrival.answer_tokens, 1);
  }
  EXPECT_EQ(phases.size(), 7u);
  for (const auto& [phase, chunks] : phases) EXPECT_EQ(chunks, 10);
  EXPECT_GT(phases.rbegin()->first - phases.begin()->first, std::chrono::seconds(1));
  EXPECT_EQ(requests, (std::map<int, int>{{0, 30}, {1, 20}, {2, 20}}));
  EXPECT_EQ(prompts.size(), 70u);
  EXPECT_EQ(make_streams({.adapters = 0})->at(59).adapter, scheduler::kBaseModel);
  EXPECT_NE(make_streams({.seed = 2})->at(0).at, make_streams({})->at(0).at);
}

constexpr StreamConfig kSkills{.streams = 3,
                               .period = 1,
                               .frames = 1,
                               .frame_tokens = 256,
                               .question_tokens = 16,
                               .answer_min = 1,
                               .answer_max = 1,
                               .adapters = 5,
                               .skills = 4,
                               .seconds = 10};

TEST(Streams, SkillsAskTogetherAboutTheSameFrame) {
  StreamConfig config = kSkills;
  config.activated = true;
  const auto arrivals = *make_streams(config);
  ASSERT_EQ(arrivals.size(), 3u * 10 * 4);
  std::set<std::vector<int32_t>> frames, prompts;
  for (size_t i = 0; i < arrivals.size(); i += 4) {
    const Arrival& first = arrivals[i];
    EXPECT_FALSE(first.pictures_of);
    const std::vector<int32_t> shared(first.prompt.begin(), first.prompt.begin() + 272);
    frames.insert(shared);
    std::set<scheduler::AdapterId> adapters;
    for (size_t j = i; j < i + 4; ++j) {
      const Arrival& one = arrivals[j];
      EXPECT_EQ(one.at, first.at);
      EXPECT_EQ(one.pictures, 1);
      EXPECT_EQ(one.acts_from, 272);
      ASSERT_EQ(one.prompt.size(), 272u + 4);
      EXPECT_TRUE(std::equal(shared.begin(), shared.end(), one.prompt.begin()));
      if (j > i) {
        EXPECT_EQ(one.pictures_of, i);
      }
      adapters.insert(one.adapter);
      prompts.insert(one.prompt);
    }
    EXPECT_EQ(adapters.size(), 4u);
  }
  EXPECT_EQ(frames.size(), 30u);
  EXPECT_EQ(prompts.size(), arrivals.size());
  EXPECT_EQ(make_streams(kSkills)->front().acts_from, 0);
}

// The prefilled tokens of all requests, by the pool that the engine has.
int prefilled(const StreamConfig& config, const char* policy) {
  const auto arrivals = *make_streams(config);
  int tokens = 0;
  const auto count = [&](const scheduler::Scheduler& s, const scheduler::StepReport& step,
                         Duration) {
    EXPECT_EQ(s.check(), "");
    tokens += step.shape.prefill_tokens;
  };
  const auto simulate_once = [&] {
    return simulate(
        {.scheduler = {.costs = testing::kGpuCosts}, .policy = policy, .pool = {.blocks = 20000}},
        arrivals, testing::kGpuCosts, count);
  };
  const auto report = simulate_once();
  EXPECT_TRUE(report.ok()) << report.error().message;
  for (const Answer& answer : report->answers) EXPECT_FALSE(answer.refused);
  const int once = tokens;
  const auto again = simulate_once();
  EXPECT_EQ(again->end, report->end);
  EXPECT_EQ(again->steps, report->steps);
  EXPECT_EQ(tokens, 2 * once);
  return once;
}

TEST(Streams, ActivatedSkillsComputeAFrameOnceAndPlainOnesEachForThemselves) {
  constexpr int kFrames = 3 * 10, kPrefix = 256 + 16, kInvocation = 4;
  StreamConfig activated = kSkills;
  activated.activated = true;
  StreamConfig base = kSkills;
  base.adapters = 0;
  for (const char* policy : {"unmerged", "merged", "valora"}) {
    SCOPED_TRACE(policy);
    EXPECT_EQ(prefilled(activated, policy), kFrames * (kPrefix + 4 * kInvocation));
    EXPECT_EQ(prefilled(base, policy), kFrames * (kPrefix + 4 * kInvocation));
    EXPECT_EQ(prefilled(kSkills, policy), kFrames * 4 * (kPrefix + kInvocation));
  }
}

TEST(Streams, RefuseInvalidValuesByName) {
  for (const auto& [config, field] : {std::pair{StreamConfig{.streams = 0}, "streams"},
                                      std::pair{StreamConfig{.period = 0}, "period"},
                                      std::pair{StreamConfig{.frames = -1}, "frames"},
                                      std::pair{StreamConfig{.answer_max = 0}, "answer_max"},
                                      std::pair{StreamConfig{.skills = -1}, "skills"},
                                      std::pair{StreamConfig{.adapters = 2, .skills = 3}, "skills"},
                                      std::pair{StreamConfig{.activated = true}, "activated"},
                                      std::pair{StreamConfig{.seconds = 0}, "seconds"}})
    EXPECT_THAT(make_streams(config).error().message, HasSubstr(field));
}

TEST(ClosedLoop, AClientSendsOneRequestAtATime) {
  auto arrivals = close_loop(*make_workload(kFirst), 3);
  ASSERT_TRUE(arrivals.ok());
  const auto report = simulate(
      {.pool = {.blocks = 20000}}, *arrivals,
      [](const scheduler::StepShape&) { return std::chrono::milliseconds(2); },
      [](const scheduler::Scheduler& s, const auto&, Duration) {
        EXPECT_LE(s.stats().running + s.stats().waiting, 3);
      });
  ASSERT_TRUE(report.ok());
  for (size_t i = 3; i < arrivals->size(); ++i)
    EXPECT_EQ(report->answers[i].arrival, report->answers[i - 3].end);
  EXPECT_FALSE(close_loop({}, 0).ok());
}

}  // namespace
}  // namespace valora::sim
