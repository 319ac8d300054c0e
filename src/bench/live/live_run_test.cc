#include "bench/live/live_run.h"

#include <gtest/gtest.h>

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

TEST(LiveRun, ATurnHoldsTheAnswersThatTheEngineGave) {
  FakeEngine engine(FakeOptions{.script = sevens});
  engine.add_adapter("zero");
  engine.add_adapter("one");
  const std::vector<std::string> names{"zero", "one"};
  // The scenario expected other answers: 500 and 501.
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

TEST(LiveRun, AFailedTurnEndsItsConversationAndNoOther) {
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

}  // namespace
}  // namespace valora::bench
