// score() and confusion() on labels and plain answers.
#include "generator/data/metrics/metrics.h"

#include <gmock/gmock.h>

namespace valora::generator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Task task_with(Metric metric, bool multi_label = false) {
  Task task;
  task.name = "plates";
  task.metric = metric;
  if (multi_label) task.head = HeadSpec{"score", true};
  return task;
}

Sample labelled(std::vector<std::string> labels) {
  return {.origin = "train.jsonl:17", .labels = std::move(labels)};
}
Prediction text(std::string answer) { return {.text = std::move(answer)}; }
Prediction head(std::vector<std::string> labels) { return {.labels = std::move(labels)}; }

std::vector<double> shares(const Task& task, const std::vector<Sample>& samples,
                           const std::vector<Prediction>& predictions) {
  const auto result = score(task, samples, predictions);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? result->of_samples : std::vector<double>{};
}

TEST(Metrics, RequireOnePredictionPerSample) {
  const std::vector<Sample> samples{labelled({"a"}), labelled({"b"})};
  const std::vector<Prediction> one{text("a")};
  const auto uneven = score(task_with(Metric::kTop1), samples, one);
  EXPECT_EQ(uneven.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(uneven.error().message, "task plates has 2 samples, but predictions for 1");
  EXPECT_EQ(score(task_with(Metric::kTop1), {}, {}).error().message,
            "task plates has no samples to score");
}

TEST(Metrics, ValueOfASetIsTheMeanOfItsSamples) {
  const std::vector<Sample> samples{labelled({"a"}), labelled({"b"}), labelled({"c"}),
                                    labelled({"d"})};
  const std::vector<Prediction> predictions{text("a"), text("b"), text("x"), text("d")};
  const auto result = score(task_with(Metric::kTop1), samples, predictions);
  EXPECT_EQ(result->value, 0.75);
  EXPECT_THAT(result->of_samples, ElementsAre(1, 1, 0, 1));
}

TEST(Top1, TextIgnoresCaseAndSurroundingWhiteSpace) {
  const std::vector<Sample> samples(6, labelled({"Red Car"}));
  EXPECT_THAT(shares(task_with(Metric::kTop1), samples,
                     {text(" red car\n"), text("RED CAR"), text("red  car"), text("a red car"),
                      text("red car."), text("")}),
              ElementsAre(1, 1, 0, 0, 0, 0));
}

TEST(Top1, HeadLabelMustMatchExactly) {
  const std::vector<Sample> samples(4, labelled({"Red"}));
  EXPECT_THAT(shares(task_with(Metric::kTop1), samples,
                     {head({"Red"}), head({"red"}), head({"Red", "Green"}), head({"Green"})}),
              ElementsAre(1, 0, 0, 0));
}

TEST(Top1, MultiLabelRequiresTheExactSet) {
  const Task task = task_with(Metric::kTop1, true);
  const std::vector<Sample> samples(6, labelled({"cat", "dog"}));
  EXPECT_THAT(shares(task, samples,
                     {head({"dog", "cat"}), head({"cat"}), head({"cat", "dog", "owl"}),
                      text("Dog,cat "), text("cat dog"), head({})}),
              ElementsAre(1, 0, 0, 1, 0, 0));
  EXPECT_THAT(shares(task, {labelled({}), labelled({})}, {head({}), head({"cat"})}),
              ElementsAre(1, 0))
      << "none may be right";
  EXPECT_THAT(shares(task, {labelled({"cat"})}, {head({"cat"})}), ElementsAre(1));
}

TEST(Top1, LabelMayContainAComma) {
  EXPECT_THAT(
      shares(task_with(Metric::kTop1), {labelled({"Paris, France"})}, {text("paris, france")}),
      ElementsAre(1));
  EXPECT_THAT(shares(task_with(Metric::kTop1, true), {labelled({"Paris, France", "day"})},
                     {text("day, Paris, France")}),
              ElementsAre(1));
}

TEST(Exact, MatchesOneOfTheAnswersExactly) {
  const Sample sample{.origin = "x:1", .answer = "42", .references = {"forty-two", " 42.0 "}};
  const std::vector<Sample> samples(6, sample);
  EXPECT_THAT(shares(task_with(Metric::kExact), samples,
                     {text(" 42\n"), text("forty-two"), text("42.0"), text("Forty-two"),
                      text("42 "), text("4 2")}),
              ElementsAre(1, 1, 1, 0, 1, 0));
  EXPECT_THAT(shares(task_with(Metric::kExact), {{.answer = "cat, dog"}}, {head({"cat", "dog"})}),
              ElementsAre(1));
}

TEST(Metrics, SampleWithoutTheNeededReferenceIsNamed) {
  const std::pair<Metric, const char*> cases[] = {
      {Metric::kTop1, "train.jsonl:17 has no label"},
      {Metric::kExact, "train.jsonl:17 has no answer"},
      {Metric::kVqa, "train.jsonl:17 has no answers"},
      {Metric::kCider, "train.jsonl:17 has no caption"},
      {Metric::kRougeL, "train.jsonl:17 has no caption"},
      {Metric::kAccuracyAtIou, "train.jsonl:17 has no box"}};
  const std::vector<Sample> samples{labelled({})};
  const std::vector<Prediction> predictions{text("a")};
  for (const auto& [metric, words] : cases) {
    const auto result = score(task_with(metric), samples, predictions);
    ASSERT_FALSE(result.ok()) << words;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(result.error().message, HasSubstr(words));
  }
}

TEST(Confusion, CountsBySampleAndAnswer) {
  Task task = task_with(Metric::kTop1);
  task.labels = {"red", "green"};
  const std::vector<Sample> samples{labelled({"red"}), labelled({"red"}), labelled({"green"}),
                                    labelled({"green"}), labelled({"blue"})};
  const std::vector<Prediction> predictions{text("Red "), head({"green"}), text("no idea"),
                                            head({"green", "red"}), text("blue")};
  const auto table = confusion(task, samples, predictions);
  ASSERT_TRUE(table);
  EXPECT_THAT(table->labels, ElementsAre("red", "green", "blue"))
      << "the task's, then what only samples have";
  EXPECT_THAT(table->counts, ElementsAre(ElementsAre(1, 1, 0, 0), ElementsAre(0, 0, 0, 2),
                                         ElementsAre(0, 0, 1, 0)));
}

TEST(Confusion, LabelsAreCaseSensitive) {
  const std::vector<Sample> samples{labelled({"a"}), labelled({"A"})};
  const std::vector<Prediction> predictions{text("a"), text("A")};
  const auto table = confusion(task_with(Metric::kTop1), samples, predictions);
  ASSERT_TRUE(table);
  EXPECT_THAT(table->labels, ElementsAre("A", "a"));
  EXPECT_THAT(table->counts, ElementsAre(ElementsAre(1, 0, 0), ElementsAre(0, 1, 0)));
}

TEST(Confusion, ExistsOnlyForSingleLabelSamples) {
  const std::vector<Sample> one{labelled({"a"})}, two{labelled({"a", "b"})}, none{labelled({})};
  const std::vector<Prediction> predictions{text("a")};
  EXPECT_TRUE(confusion(task_with(Metric::kTop1), one, predictions));
  EXPECT_FALSE(confusion(task_with(Metric::kTop1), two, predictions));
  EXPECT_FALSE(confusion(task_with(Metric::kTop1), none, predictions));
  EXPECT_FALSE(confusion(task_with(Metric::kTop1, true), one, predictions));
  EXPECT_FALSE(confusion(task_with(Metric::kTop1), {}, {}));
}

}  // namespace
}  // namespace valora::generator
