#include "lab/live/live_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/testing/fake_engine.h"

namespace valora::bench {
namespace {

using testing::FakeEngine;
using testing::FakeOptions;
using testing::Reply;

// Answers every request with as many tokens as it asks for: 7, 7, 7, …
Reply sevens(const GenerateRequest& request) {
  Reply reply;
  for (int i = 0; i < *request.sampling.max_tokens; ++i) {
    OutputChunk chunk;
    chunk.tokens.push_back({{7, "7", 0}, {}});
    reply.chunks.push_back(chunk);
  }
  return reply;
}

sim::Arrival question(double at, std::vector<int32_t> prompt, int answer_tokens, int adapter,
                      std::optional<size_t> previous = {}) {
  sim::Arrival arrival;
  arrival.at = from_seconds(at);
  arrival.prompt = std::move(prompt);
  arrival.answer_tokens = answer_tokens;
  arrival.adapter = adapter;
  arrival.previous = previous;
  return arrival;
}

TEST(LiveRun, CacheSaltsSeparateRuns) {
  FakeEngine engine(FakeOptions{.script = sevens});
  const std::vector<sim::Arrival> arrivals{question(0, {1}, 1, scheduler::kBaseModel),
                                           question(0, {2}, 1, scheduler::kBaseModel)};
  run_live(engine, arrivals, {}, {.salt = [](size_t i) { return "run " + std::to_string(i); }});
  run_live(engine, arrivals, {});
  std::vector<std::string> salts;
  for (const GenerateRequest& request : engine.requests()) salts.push_back(request.cache_salt);
  EXPECT_EQ(salts, (std::vector<std::string>{"run 0", "run 1", "", ""}));
}

TEST(LiveRun, SkillsOfAFrameGetItsPicture) {
  FakeEngine engine(FakeOptions{.script = sevens});
  sim::Arrival frame = question(0, {1, 2, 3}, 1, scheduler::kBaseModel);
  frame.pictures = frame.picture_tokens = 1;
  sim::Arrival later = frame;
  later.pictures_of = 0;
  run_live(engine, std::vector{frame, later, frame}, {},
           {.picture = [](size_t i, int) { return "picture " + std::to_string(i); }});
  std::vector<std::string> pictures;
  for (const GenerateRequest& request : engine.requests()) {
    const ChatMessage& message = std::get<ChatPrompt>(request.prompt).messages.at(0);
    pictures.push_back(std::get<MediaRef>(message.parts.at(0)).url);
  }
  std::ranges::sort(pictures);
  EXPECT_EQ(pictures, (std::vector<std::string>{"picture 0", "picture 0", "picture 2"}));
}

TEST(LiveRun, TurnContainsEarlierAnswersOfTheEngine) {
  FakeEngine engine(FakeOptions{.script = sevens});
  engine.add_adapter("zero");
  engine.add_adapter("one");
  const std::vector<std::string> names{"zero", "one"};
  // The scenario predicted other answers: 500 and 501.
  const std::vector<sim::Arrival> arrivals{question(0, {1, 2}, 2, 1),
                                           question(0.01, {1, 2, 500, 501, 300}, 1, 1, 0),
                                           question(0.02, {9}, 3, scheduler::kBaseModel)};
  const LiveReport report = run_live(engine, arrivals, names);
  ASSERT_EQ(report.answers.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(report.answers[i].error);
    EXPECT_EQ(report.answers[i].tokens.size(), static_cast<size_t>(arrivals[i].answer_tokens));
  }
  const auto requests = engine.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(std::get<std::vector<int32_t>>(requests[1].prompt),
            (std::vector<int32_t>{1, 2, 7, 7, 300 % 256}));
  EXPECT_EQ(requests[1].adapters.at(0).name, "one");
  EXPECT_TRUE(requests[2].adapters.empty());
}

TEST(LiveRun, FailedTurnEndsOnlyItsConversation) {
  FakeEngine engine(FakeOptions{.script = [](const GenerateRequest& request) {
    Reply reply = sevens(request);
    if (*request.sampling.max_tokens == 4) reply.error = internal("broken");
    return reply;
  }});
  const std::vector<sim::Arrival> arrivals{question(0, {1}, 4, scheduler::kBaseModel),
                                           question(0, {1, 2, 3}, 1, scheduler::kBaseModel, 0),
                                           question(0, {5}, 1, scheduler::kBaseModel)};
  const LiveReport report = run_live(engine, arrivals, {});
  EXPECT_TRUE(report.answers[0].error && report.answers[1].error);
  EXPECT_FALSE(report.answers[2].error);
  EXPECT_EQ(engine.requests().size(), 2u);
}

TEST(LiveRun, DependentRequestWaitsForItsPredecessor) {
  FakeEngine engine(FakeOptions{.script = sevens});
  std::vector<sim::Arrival> arrivals{question(0.02, {1}, 2, scheduler::kBaseModel),
                                     question(0.03, {2}, 1, scheduler::kBaseModel),
                                     question(0, {3}, 1, scheduler::kBaseModel)};
  arrivals[1].after = 0;
  std::vector<size_t> ended;
  const LiveReport report = run_live(
      engine, arrivals, {}, {.picture = {}, .progress = [&](size_t n) { ended.push_back(n); }});
  const auto requests = engine.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(std::get<std::vector<int32_t>>(requests[2].prompt), std::vector<int32_t>{2});
  EXPECT_GE(report.answers[1].arrival, report.answers[0].arrival + 0.03);
  EXPECT_EQ(report.answers[0].arrival, 0.02);
  EXPECT_TRUE(std::ranges::is_sorted(ended));
}

// The prompt's text has one word per token, except for those that the picture stands for.
TEST(LiveRun, PictureRequestIsAChatWithEarlierAnswers) {
  FakeEngine engine(FakeOptions{.script = [](const GenerateRequest& request) {
    Reply reply = sevens(request);
    for (OutputChunk& chunk : reply.chunks) chunk.text = "so";
    return reply;
  }});
  std::vector<sim::Arrival> arrivals{
      question(0, {90, 91, 92, 0, 27}, 2, scheduler::kBaseModel),
      question(0, {90, 91, 92, 0, 27, 500, 501, 1}, 1, scheduler::kBaseModel, 0)};
  arrivals[0].pictures = 2;
  arrivals[0].picture_tokens = 3;
  arrivals[1].after = 0;
  const LiveReport report =
      run_live(engine, arrivals, {},
               {.picture = [](size_t index, int i) { return fmt::format("data:{}:{}", index, i); },
                .progress = {}});
  EXPECT_FALSE(report.answers[1].error);
  const auto requests = engine.requests();
  ASSERT_EQ(requests.size(), 2u);
  const auto& messages = std::get<ChatPrompt>(requests[1].prompt).messages;
  ASSERT_EQ(messages.size(), 3u);
  ASSERT_EQ(messages[0].parts.size(), 3u);
  EXPECT_EQ(std::get<MediaRef>(messages[0].parts[0]).url, "data:0:0");
  EXPECT_EQ(std::get<MediaRef>(messages[0].parts[1]).url, "data:0:1");
  EXPECT_EQ(std::get<std::string>(messages[0].parts[2]), "aa bb");
  EXPECT_EQ(messages[1].role, "assistant");
  EXPECT_EQ(std::get<std::string>(messages[1].parts[0]), "soso");
  EXPECT_EQ(std::get<std::string>(messages[2].parts[0]), "ba");
}

}  // namespace
}  // namespace valora::bench
