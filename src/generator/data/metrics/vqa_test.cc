#include <gmock/gmock.h>

#include "generator/data/answer_text.h"
#include "generator/data/metrics/metrics.h"

namespace valora::generator {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

double accuracy(std::vector<std::string> answers, const std::string& answer) {
  Task task;
  task.metric = Metric::kVqa;
  const std::vector<Sample> samples{
      {.origin = "x:1", .answer = answers.front(), .references = std::move(answers)}};
  const std::vector<Prediction> predictions{{.text = answer}};
  const auto result = score(task, samples, predictions);
  EXPECT_TRUE(result.ok());
  return result.ok() ? result->value : -1;
}

std::vector<std::string> answers(int cats, int dogs) {
  std::vector<std::string> list(static_cast<size_t>(cats), "cat");
  list.insert(list.end(), static_cast<size_t>(dogs), "dog");
  return list;
}

TEST(Vqa, AveragesOverTheTenLeaveOneOutSets) {
  EXPECT_EQ(accuracy(answers(0, 10), "cat"), 0);
  // One of ten gave this answer: nine times it is among the others, and once it is left out.
  EXPECT_THAT(accuracy(answers(1, 9), "cat"), DoubleEq(9 * (1 / 3.0) / 10));
  EXPECT_THAT(accuracy(answers(2, 8), "cat"), DoubleEq((8 * (2 / 3.0) + 2 * (1 / 3.0)) / 10));
  EXPECT_THAT(accuracy(answers(3, 7), "cat"), DoubleEq((7 * 1.0 + 3 * (2 / 3.0)) / 10));
  EXPECT_EQ(accuracy(answers(4, 6), "cat"), 1);
  EXPECT_EQ(accuracy(answers(10, 0), "cat"), 1);
}

TEST(Vqa, AppliesTheSameRuleToFewerAnswers) {
  EXPECT_THAT(accuracy(answers(2, 1), "cat"), DoubleEq((1 * (2 / 3.0) + 2 * (1 / 3.0)) / 3));
  EXPECT_THAT(accuracy(answers(2, 0), "cat"), DoubleEq(1 / 3.0));
  EXPECT_EQ(accuracy(answers(5, 0), "cat"), 1);
}

TEST(Vqa, SingleAnswerCountsAsTen) {
  EXPECT_EQ(accuracy({"two"}, "2"), 1);
  EXPECT_EQ(accuracy({"two"}, "3"), 0);
}

TEST(Vqa, AnswerReplacesMissingReferences) {
  Task task;
  task.metric = Metric::kVqa;
  const std::vector<Sample> samples{{.answer = "the cat"}};
  const std::vector<Prediction> predictions{{.text = "Cat!"}};
  EXPECT_THAT(score(task, samples, predictions)->of_samples, ElementsAre(1));
}

TEST(VqaAnswer, IsNormalised) {
  const std::pair<const char*, const char*> cases[] = {{"  The Cat\n", "cat"},
                                                       {"a dog and an owl", "dog and owl"},
                                                       {"Two", "2"},
                                                       {"none", "0"},
                                                       {"ten cats", "10 cats"},
                                                       {"twenty", "twenty"},
                                                       {"isnt it", "isn't it"},
                                                       {"couldnt've", "couldn't've"},
                                                       {"couldn'tve", "couldn't've"},
                                                       {"Theyre", "they're"},
                                                       {"don't", "don't"},
                                                       {"yes.", "yes"},
                                                       {"3.5", "3.5"},
                                                       {"u.s.a.", "usa"},
                                                       {"no. 5", "no 5"},
                                                       {"red/blue", "red blue"},
                                                       {"red / blue", "red blue"},
                                                       {"t-shirt", "t shirt"},
                                                       {"yes, it is", "yes it is"},
                                                       {"1,000", "1000"},
                                                       {"1,000 t-shirts", "1000 tshirts"},
                                                       {"what?", "what"},
                                                       {"hi! you", "hi you"},
                                                       {"10:30", "10:30"},
                                                       {"tab\there", "tab here"},
                                                       {"", ""},
                                                       {"the", ""},
                                                       {"…", "…"}};
  for (const auto& [text, normalised] : cases)
    EXPECT_EQ(normalised_vqa_answer(text), normalised) << text;
}

}  // namespace
}  // namespace valora::generator
