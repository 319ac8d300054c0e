// CIDEr-D and ROUGE-L computed by hand. tests/parity compares with the published code.
#include <gmock/gmock.h>

#include <cmath>

#include "generator/data/answer_text.h"
#include "generator/data/metrics/metrics.h"

namespace valora::generator {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

using References = std::vector<std::vector<std::string>>;

Score scored(Metric metric, const References& references, const std::vector<std::string>& answers) {
  Task task;
  task.metric = metric;
  std::vector<Sample> samples;
  std::vector<Prediction> predictions;
  for (const auto& of_sample : references)
    samples.push_back({.origin = "x:1", .references = of_sample});
  for (const std::string& answer : answers) predictions.push_back({.text = answer});
  const auto result = score(task, samples, predictions);
  EXPECT_TRUE(result.ok());
  return result.ok() ? *result : Score{};
}

TEST(CaptionWords, AreLowerCaseWithoutPunctuation) {
  EXPECT_THAT(caption_words("A man's T-shirt -- 3.5 feet, \"ok\"?"),
              ElementsAre("a", "man's", "t-shirt", "3.5", "feet", "ok"));
  EXPECT_THAT(caption_words("dogs' end.-"), ElementsAre("dogs", "end"));
  EXPECT_THAT(caption_words("Ein Bär… “man’s”"), ElementsAre("ein", "bär", "man's"));
  EXPECT_THAT(caption_words(" .,;"), ElementsAre());
}

TEST(Cider, IdenticalCaptionScoresOne) {
  const References references{{"a black cat on a mat"}, {"two dogs in the park"}};
  EXPECT_THAT(
      scored(Metric::kCider, references, {"A black cat on a mat.", "no such thing here at all"})
          .of_samples,
      ElementsAre(DoubleNear(1, 1e-12), 0));
}

TEST(Cider, EqualsHandComputedScores) {
  // With two samples, a word in one of them weighs log 2, and a word in both weighs nothing.
  const References references{{"red cat"}, {"red dog"}};
  // Single words: (red: 0, cat: log 2) on both sides scores 1; the pair "red cat" scores 1; longer
  // n-grams score nothing.
  EXPECT_THAT(scored(Metric::kCider, references, {"red cat", "red"}).of_samples,
              ElementsAre(DoubleNear(0.5, 1e-12), 0));
  // "cat cat": the words' weight is clipped to the reference's, over the answer's norm 2 log 2; no
  // pair matches.
  EXPECT_THAT(scored(Metric::kCider, references, {"cat cat", "red"}).of_samples[0],
              DoubleNear(0.5 / 4, 1e-12));
  // Three pairs instead of one: exp(-2² / 72).
  EXPECT_THAT(scored(Metric::kCider, references, {"red cat red red", "red"}).of_samples[0],
              DoubleNear((1 + 1 / std::sqrt(3.)) / 4 * std::exp(-4 / 72.), 1e-12));
}

TEST(Cider, SingleSampleScoresZero) {
  EXPECT_EQ(scored(Metric::kCider, {{"a cat"}}, {"a cat"}).value, 0);
}

TEST(RougeL, EqualsHandComputedScores) {
  const double b2 = 1.2 * 1.2;
  EXPECT_THAT(scored(Metric::kRougeL, {{"a cat on the mat"}}, {"A cat, on the mat!"}).value,
              DoubleNear(1, 1e-12));
  // 3 of the answer's 4 words in order, 3 of the reference's 5.
  const double p = 3 / 4., r = 3 / 5.;
  EXPECT_THAT(scored(Metric::kRougeL, {{"a cat on the mat"}}, {"a mat cat on"}).value,
              DoubleNear((1 + b2) * p * r / (r + b2 * p), 1e-12));
  // The best precision comes from the second reference, the best recall from the first.
  EXPECT_THAT(scored(Metric::kRougeL,
                     {
                         {"cat"},
                     },
                     {"cat dog"})
                  .value,
              DoubleNear((1 + b2) * 0.5 / (1 + b2 * 0.5), 1e-12));
  EXPECT_THAT(scored(Metric::kRougeL, {{"cat", "dog cat dog owl"}}, {"cat dog"}).value,
              DoubleNear(1, 1e-12));
}

TEST(RougeL, DisjointOrEmptyAnswerScoresZero) {
  EXPECT_EQ(scored(Metric::kRougeL, {{"a cat"}}, {"dog"}).value, 0);
  EXPECT_EQ(scored(Metric::kRougeL, {{"a cat"}}, {""}).value, 0);
  EXPECT_EQ(scored(Metric::kCider, {{"a cat"}, {"b"}}, {"", ""}).value, 0);
}

}  // namespace
}  // namespace valora::generator
