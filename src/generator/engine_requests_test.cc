#include "generator/engine_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/testing/fake_engine.h"

namespace valora::generator {
namespace {

using valora::testing::FakeEngine;
using valora::testing::Reply;
using valora::testing::say;
using valora::testing::text_of;

Reply echo(const GenerateRequest& request) { return say("re: " + text_of(request.prompt)); }

EngineRequests numbered(int count, int concurrency) {
  EngineRequests requests;
  requests.count = count;
  requests.concurrency = concurrency;
  requests.make = [](int i) -> Result<GenerateRequest> {
    GenerateRequest request;
    request.prompt = ChatPrompt{.messages = {{"user", {std::to_string(i)}}}};
    return request;
  };
  requests.name = [](int i) { return "line " + std::to_string(i); };
  return requests;
}

TEST(EngineRequests, ReturnsAnswersInOrderWithBoundedConcurrency) {
  FakeEngine engine({.script = echo, .newest_first = {{.total = 20, .patience = 4}}});
  const auto answers = ask_all(engine, numbered(20, 4));
  ASSERT_TRUE(answers.ok()) << answers.error().message;
  EXPECT_EQ(engine.most_open(), 4u);
  EXPECT_EQ(engine.cancelled(), 0u);
  ASSERT_EQ(answers->size(), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ((*answers)[i].text, "re: " + std::to_string(i));
}

TEST(EngineRequests, ProgressEndsAtTheTotal) {
  FakeEngine engine({.script = echo, .newest_first = {{.total = 5}}});
  auto requests = numbered(5, 2);
  std::vector<int> seen;
  requests.progress = [&](int done, int total) {
    EXPECT_EQ(total, 5);
    seen.push_back(done);
  };
  ASSERT_TRUE(ask_all(engine, requests).ok());
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(seen.back(), 5);
}

TEST(EngineRequests, EmptyListIsNotAnError) {
  FakeEngine engine({.script = echo});
  const auto answers = ask_all(engine, numbered(0, 4));
  ASSERT_TRUE(answers.ok());
  EXPECT_TRUE(answers->empty());
  EXPECT_EQ(ask_all(engine, numbered(3, 0)).error().code, ErrorCode::kInvalidArgument);
}

// The engine waits for all eight, fails the newest, and still sends output to the cancelled ones.
TEST(EngineRequests, FailureCancelsAndAwaitsTheOthers) {
  const auto script = [](const GenerateRequest& request) {
    if (text_of(request.prompt) != "7") return echo(request);
    return Reply{.error = Error{ErrorCode::kUnprocessable, "the picture is broken", {}}};
  };
  FakeEngine engine({.script = script, .newest_first = {{.total = 100, .patience = 8}}});
  const auto answers = ask_all(engine, numbered(100, 8));
  ASSERT_FALSE(answers.ok());
  EXPECT_EQ(answers.error().message, "line 7: the picture is broken");
  EXPECT_EQ(answers.error().code, ErrorCode::kUnprocessable);
  EXPECT_EQ(engine.held_sinks(), 0u) << "a sink could still be told something";
  EXPECT_GE(engine.cancelled(), 7u);
  EXPECT_LE(engine.requests().size(), 9u);
}

TEST(EngineRequests, StopCancelsRunningRequests) {
  FakeEngine engine({.script = echo, .newest_first = {{.total = 100, .patience = 4}}});
  auto requests = numbered(100, 4);
  std::stop_source stop;
  requests.stop = stop.get_token();
  requests.progress = [&](int done, int) {
    if (done >= 3) stop.request_stop();
  };
  const auto answers = ask_all(engine, requests);
  ASSERT_FALSE(answers.ok());
  EXPECT_EQ(answers.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(answers.error().message, "stopped by a signal");
  EXPECT_EQ(engine.held_sinks(), 0u);
  EXPECT_LE(engine.requests().size(), 20u);
}

TEST(EngineRequests, SubmissionFailureEndsTheRun) {
  const auto script = [](const GenerateRequest& request) {
    if (text_of(request.prompt) != "3") return echo(request);
    return Reply{.refusal = invalid("refused at the door")};
  };
  FakeEngine engine({.script = script, .newest_first = {{.total = 100, .patience = 6}}});
  const auto refused = ask_all(engine, numbered(100, 6));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "line 3: refused at the door");
  EXPECT_EQ(engine.cancelled(), 3u);
  EXPECT_EQ(engine.held_sinks(), 0u);

  auto requests = numbered(100, 6);
  requests.make = [](int) -> Result<GenerateRequest> { return not_found("no such file"); };
  EXPECT_EQ(ask_all(engine, requests).error().message, "line 0: no such file");
}

}  // namespace
}  // namespace valora::generator
