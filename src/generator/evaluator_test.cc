#include "generator/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/testing/fake_engine.h"

namespace valora::generator {
namespace {

using valora::testing::FakeEngine;
using valora::testing::Reply;
using valora::testing::say;
using valora::testing::text_of;

Task parity_task() {
  Task task;
  task.name = "parity";
  task.metric = Metric::kTop1;
  task.labels = {"even", "odd"};
  task.max_answer_tokens = 5;
  return task;
}

std::vector<Sample> numbers(int count) {
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) {
    Sample sample;
    sample.origin = "numbers.jsonl:" + std::to_string(i + 1);
    sample.question = std::to_string(i);
    sample.answer = i % 2 ? "odd" : "even";
    sample.labels = {sample.answer};
    samples.push_back(sample);
  }
  return samples;
}

// Answers correctly except for 3, which it calls even.
Reply parity(const GenerateRequest& request) {
  const int number = std::stoi(text_of(request.prompt));
  Reply reply = say(number % 2 && number != 3 ? "odd" : "even", {-1, -1});
  reply.info.timings.e2e_seconds = number + 1.0;
  return reply;
}

TEST(Evaluator, ScoresTheBaseModel) {
  FakeEngine engine({.script = parity, .newest_first = {{.total = 10, .patience = 3}}});
  const auto samples = numbers(10);
  int progress = 0;
  EvaluationOptions options{.concurrency = 3};
  options.progress = [&](int done, int) { progress = done; };
  const auto evaluation = evaluate(engine, parity_task(), samples, options);
  ASSERT_TRUE(evaluation.ok()) << evaluation.error().message;
  EXPECT_EQ(engine.most_open(), 3u);
  EXPECT_EQ(progress, 10);
  EXPECT_DOUBLE_EQ(evaluation->score.value, 0.9);
  EXPECT_EQ(evaluation->predictions[3].text, "even");
  EXPECT_EQ(evaluation->predictions[9].text, "odd");
  ASSERT_TRUE(evaluation->confusion);
  EXPECT_EQ(evaluation->confusion->counts,
            (std::vector<std::vector<int64_t>>{{5, 0, 0}, {1, 4, 0}}));
  EXPECT_DOUBLE_EQ(evaluation->latency_p50, 5.5);
  EXPECT_DOUBLE_EQ(evaluation->latency_p90, 9.1);
  EXPECT_EQ(evaluation->prompt_tokens, 100);
  EXPECT_EQ(evaluation->completion_tokens, 20);
  for (const GenerateRequest& request : engine.requests()) {
    EXPECT_TRUE(request.adapters.empty());
    EXPECT_EQ(request.sampling.temperature, 0);
    EXPECT_EQ(request.sampling.max_tokens, 5);
    EXPECT_EQ(request.head, "");
    EXPECT_EQ(request.task, valora::Task::kGenerate);
  }
}

// Answers are 200 x 100 pixels, so a box of the whole picture's left half ends at 100.
TEST(Evaluator, ScoresBoxesInPixels) {
  FakeEngine engine({.script = [](const GenerateRequest& request) {
    EXPECT_EQ(request.constraint->kind, AnswerConstraint::Kind::kBoxes);
    EXPECT_EQ(request.sampling.max_tokens, 1024);
    const bool first = text_of(request.prompt) == "0";
    return say(first ? R"({"size": [200, 100], "seen": [20, 10], "boxes": [)"
                       R"({"label": "car", "box": [0, 0, 100, 100]},)"
                       R"({"label": null, "box": [0, 0, 20, 20]}]})"
                     : R"({"size": [200, 100], "seen": [20, 10], "boxes": []})",
               {-1});
  }});
  Task task = parity_task();
  task.type = TaskType::kDetection;
  task.metric = Metric::kF1AtIou;
  auto samples = numbers(2);
  samples[0].boxes = {{"car", {0, 0, 0.5, 1}}};
  AnswerConstraint constraint{AnswerConstraint::Kind::kBoxes, {}, {}, true, "--boxes"};
  const auto evaluation = evaluate(engine, task, samples, {.constraint = constraint});
  ASSERT_TRUE(evaluation.ok()) << evaluation.error().message;
  ASSERT_EQ(evaluation->predictions[0].boxes->size(), 2u);
  EXPECT_EQ(evaluation->predictions[0].boxes->front().box.x1, 0.5);
  EXPECT_EQ(evaluation->score.of_samples[1], 1);
  EXPECT_NEAR(evaluation->score.value, 2.0 / 3, 1e-9);
}

Reply by_head(const GenerateRequest& request) {
  if (request.task == valora::Task::kGenerate) return parity(request);
  const bool odd = std::stoi(text_of(request.prompt)) % 2;
  Classification c{
      *request.head, {"even", "odd"}, {0, 0}, {odd ? 0.1f : 0.9f, odd ? 0.9f : 0.5f}, odd};
  return {.classification = c};
}

TEST(Evaluator, UsesTheHeadIfTaskAndAdapterHaveIt) {
  FakeEngine engine({.script = by_head, .newest_first = {{.total = 4}}});
  engine.add_adapter("heads", {{"parity", {"even", "odd"}}});
  engine.add_adapter("other", {{"colour", {"red", "blue"}}});
  Task task = parity_task();
  task.head = HeadSpec{"parity", false};
  const auto samples = numbers(4);
  const auto asked = [&](const EvaluationOptions& options) {
    const auto evaluation = evaluate(engine, task, samples, options);
    EXPECT_TRUE(evaluation.ok()) << evaluation.error().message;
    EXPECT_EQ(engine.requests().back().adapters.front().name, options.adapter);
    return evaluation->score.value;
  };
  EXPECT_DOUBLE_EQ(asked({.adapter = "heads"}), 1);
  EXPECT_EQ(engine.requests().back().task, valora::Task::kClassify);
  EXPECT_EQ(engine.requests().back().head, "parity");
  EXPECT_DOUBLE_EQ(asked({.adapter = "heads", .use_head = false}), 0.75);
  EXPECT_DOUBLE_EQ(asked({.adapter = "other"}), 0.75);
  EXPECT_EQ(engine.requests().back().head, "") << "the language model, not another task's head";
  task.head.reset();
  EXPECT_DOUBLE_EQ(asked({.adapter = "heads"}), 0.75);
}

TEST(Evaluator, MultiLabelThresholdIsOneHalf) {
  FakeEngine engine({.script = by_head, .newest_first = {{.total = 2}}});
  engine.add_adapter("heads", {{"parity", {"even", "odd"}}});
  Task task = parity_task();
  task.head = HeadSpec{"parity", true};
  auto samples = numbers(2);
  samples[0].labels = {"even", "odd"};
  const auto evaluation = evaluate(engine, task, samples, {.adapter = "heads"});
  ASSERT_TRUE(evaluation.ok()) << evaluation.error().message;
  EXPECT_EQ(evaluation->predictions[0].labels, (std::vector<std::string>{"even", "odd"}));
  EXPECT_EQ(evaluation->predictions[1].labels, (std::vector<std::string>{"odd"}));
}

TEST(Evaluator, NamesTheFailedSample) {
  const auto script = [](const GenerateRequest& request) {
    if (text_of(request.prompt) != "6") return parity(request);
    return Reply{.error = invalid("the image is truncated")};
  };
  FakeEngine engine({.script = script, .newest_first = {{.total = 10}}});
  const auto samples = numbers(10);
  const auto evaluation = evaluate(engine, parity_task(), samples, {.concurrency = 4});
  ASSERT_FALSE(evaluation.ok());
  EXPECT_EQ(evaluation.error().message, "numbers.jsonl:7: the image is truncated");
  EXPECT_EQ(engine.held_sinks(), 0u);
}

TEST(Evaluator, RefusesTasksThatCannotBeEvaluated) {
  FakeEngine engine({.script = parity});
  const auto samples = numbers(1);
  EXPECT_EQ(evaluate(engine, parity_task(), samples, {.adapter = "nobody"}).error().message,
            "adapter nobody is not loaded");
  EXPECT_NE(
      evaluate(engine, parity_task(), {}, {}).error().message.find("task parity has no samples"),
      std::string::npos);
  EXPECT_FALSE(evaluate(engine, parity_task(), samples, {.concurrency = 0}).ok());
}

}  // namespace
}  // namespace valora::generator
