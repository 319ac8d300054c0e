#include "generator/engine_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/testing/scripted_engine.h"

namespace valora::generator {
namespace {

using testing::question_of;
using testing::Reply;
using testing::ScriptedEngine;

Reply echo(const GenerateRequest& request) { return {.text = "re: " + question_of(request)}; }

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

TEST(EngineRequests, AnswersComeInOrderThroughABoundedNumber) {
  ScriptedEngine engine(echo, 20, 4);
  const auto answers = ask_all(engine, numbered(20, 4));
  ASSERT_TRUE(answers.ok()) << answers.error().message;
  EXPECT_EQ(engine.most_open(), 4u);
  EXPECT_EQ(engine.cancelled(), 0u);
  ASSERT_EQ(answers->size(), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ((*answers)[i].text, "re: " + std::to_string(i));
}

TEST(EngineRequests, ProgressEndsWithAll) {
  ScriptedEngine engine(echo, 5);
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

TEST(EngineRequests, NothingToAskIsNoError) {
  ScriptedEngine engine(echo, 0);
  const auto answers = ask_all(engine, numbered(0, 4));
  ASSERT_TRUE(answers.ok());
  EXPECT_TRUE(answers->empty());
  EXPECT_EQ(ask_all(engine, numbered(3, 0)).error().code, ErrorCode::kInvalidArgument);
}

// The engine waits for all eight, fails the newest, and still speaks to those that are cancelled.
TEST(EngineRequests, AFailureCancelsTheOthersAndWaitsForThem) {
  ScriptedEngine engine(
      [](const GenerateRequest& request) {
        Reply reply = echo(request);
        if (question_of(request) == "7")
          reply.error = Error{ErrorCode::kUnprocessable, "the picture is broken", {}};
        return reply;
      },
      100, 8);
  const auto answers = ask_all(engine, numbered(100, 8));
  ASSERT_FALSE(answers.ok());
  EXPECT_EQ(answers.error().message, "line 7: the picture is broken");
  EXPECT_EQ(answers.error().code, ErrorCode::kUnprocessable);
  EXPECT_EQ(engine.held_sinks(), 0u) << "a sink could still be told something";
  EXPECT_GE(engine.cancelled(), 7u);
  EXPECT_LE(engine.requests().size(), 9u);
}

TEST(EngineRequests, WhatCannotBeSubmittedEndsItToo) {
  ScriptedEngine engine(echo, 100, 6);
  engine.refuse("3");
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
