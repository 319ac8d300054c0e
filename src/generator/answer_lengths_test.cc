#include "generator/answer_lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/testing/fake_engine.h"

namespace valora::generator {
namespace {

using ::testing::HasSubstr;
using valora::testing::FakeEngine;

Task task_with(Metric metric) {
  Task task;
  task.name = "signs";
  task.metric = metric;
  task.max_answer_tokens = 2;
  task.where = "tasks.yaml:3";
  return task;
}

TEST(AnswerLengths, ErrorIfNoReferenceFits) {
  const FakeEngine engine({});
  const std::vector<Sample> longer{{.answer = "one two three four"}, {.answer = "a b c d e"}};
  for (const Metric metric : {Metric::kTop1, Metric::kExact, Metric::kVqa}) {
    const Status checked = check_answer_lengths(engine, task_with(metric), longer, "validation");
    ASSERT_FALSE(checked.ok());
    EXPECT_THAT(checked.error().message,
                HasSubstr("tasks.yaml:3: task signs: all 2 validation answers are longer than "
                          "max_answer_tokens (2; the longest has "));
  }
  for (const Metric metric : {Metric::kCider, Metric::kF1AtIou, Metric::kRougeL})
    EXPECT_TRUE(check_answer_lengths(engine, task_with(metric), longer, "validation").ok());
}

TEST(AnswerLengths, AcceptsAMixOfShortAndLongAnswers) {
  const FakeEngine engine({});
  const std::vector<Sample> mixed{{.answer = "a b c d e"}, {.answer = "a"}};
  EXPECT_TRUE(check_answer_lengths(engine, task_with(Metric::kExact), mixed, "training").ok());
  EXPECT_TRUE(check_answer_lengths(engine, task_with(Metric::kExact), {}, "training").ok());
}

}  // namespace
}  // namespace valora::generator
