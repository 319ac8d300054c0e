#include <gmock/gmock.h>

#include "generator/data/box_text.h"
#include "generator/data/metrics/metrics.h"

namespace valora::generator {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

// In hundredths of a side.
LabelledBox box(const std::string& label, int x0, int y0, int x1, int y1) {
  return {label, {x0 / 100., y0 / 100., x1 / 100., y1 / 100.}};
}

Task boxes_task(Metric metric, bool labels = true) {
  Task task;
  task.metric = metric;
  task.boxes.labels = labels;
  return task;
}

Score scored(const Task& task, const std::vector<std::vector<LabelledBox>>& truths,
             const std::vector<std::vector<LabelledBox>>& answers) {
  std::vector<Sample> samples;
  std::vector<Prediction> predictions;
  for (const auto& boxes : truths) samples.push_back({.origin = "x:1", .boxes = boxes});
  for (const auto& boxes : answers) predictions.push_back({.text = write_boxes(boxes, task.boxes)});
  const auto result = score(task, samples, predictions);
  EXPECT_TRUE(result.ok());
  return result.ok() ? *result : Score{};
}

TEST(F1AtIou, PoolsAllBoxesOfTheSet) {
  // Found 2 of 2 with one false positive; 0 of 1; 1 of 1.
  const Score score =
      scored(boxes_task(Metric::kF1AtIou),
             {{box("car", 0, 0, 20, 20), box("car", 50, 50, 80, 80)},
              {box("car", 0, 0, 10, 10)},
              {box("bus", 0, 0, 50, 50)}},
             {{box("car", 50, 50, 80, 82), box("car", 0, 0, 20, 20), box("car", 90, 90, 99, 99)},
              {},
              {box("bus", 0, 0, 50, 40)}});
  EXPECT_THAT(score.of_samples, ElementsAre(DoubleEq(2 * 2 / 5.), 0, 1));
  EXPECT_THAT(score.value, DoubleEq(2 * 3 / 8.));
}

TEST(F1AtIou, BoxesMatchWithinTheirLabel) {
  const std::vector<std::vector<LabelledBox>> truth{{box("car", 0, 0, 20, 20)}},
      other{{box("bus", 0, 0, 20, 20)}}, same{{box("Car", 0, 0, 20, 20)}};
  EXPECT_EQ(scored(boxes_task(Metric::kF1AtIou), truth, other).value, 0);
  EXPECT_EQ(scored(boxes_task(Metric::kF1AtIou), truth, same).value, 1);
  EXPECT_EQ(scored(boxes_task(Metric::kF1AtIou, false), truth, other).value, 1)
      << "boxes without labels are all of one kind";
}

TEST(F1AtIou, RequiresAnOverlapOfAtLeastHalf) {
  const std::vector<std::vector<LabelledBox>> truth{{box("a", 0, 0, 40, 40)}};
  EXPECT_EQ(scored(boxes_task(Metric::kF1AtIou), truth, {{box("a", 0, 0, 20, 40)}}).value, 1);
  EXPECT_EQ(scored(boxes_task(Metric::kF1AtIou), truth, {{box("a", 0, 0, 19, 40)}}).value, 0);
}

TEST(F1AtIou, MatchesEachBoxOnce) {
  const std::vector<std::vector<LabelledBox>> truth{{box("a", 0, 0, 40, 40)}};
  EXPECT_THAT(scored(boxes_task(Metric::kF1AtIou), truth,
                     {{box("a", 0, 0, 40, 40), box("a", 0, 0, 40, 40)}})
                  .value,
              DoubleEq(2 * 1 / 3.));
}

TEST(F1AtIou, MatchingIsMaximal) {
  // The middle answer matches both truths, the left one only the left truth: a greedy matching
  // could miss one.
  const std::vector<LabelledBox> truths{box("a", 0, 0, 30, 10), box("a", 10, 0, 40, 10)};
  const std::vector<LabelledBox> answers{box("a", 5, 0, 35, 10), box("a", 0, 0, 29, 10)};
  EXPECT_LT(overlap(truths[1].box, answers[1].box), 0.5);
  EXPECT_EQ(scored(boxes_task(Metric::kF1AtIou), {truths}, {answers}).value, 1);
  EXPECT_EQ(
      scored(boxes_task(Metric::kF1AtIou), {{truths[1], truths[0]}}, {{answers[1], answers[0]}})
          .value,
      1);
}

TEST(F1AtIou, EmptyTruthScoresOneOnlyForAnEmptyAnswer) {
  EXPECT_EQ(scored(boxes_task(Metric::kF1AtIou), {{}}, {{}}).value, 1);
  EXPECT_EQ(scored(boxes_task(Metric::kF1AtIou), {{}}, {{box("a", 0, 0, 9, 9)}}).value, 0);
}

TEST(AccuracyAtIou, OnlyTheFirstBoxCounts) {
  const std::vector<LabelledBox> truth{box("a", 0, 0, 40, 40)};
  const Score score = scored(boxes_task(Metric::kAccuracyAtIou, false), {truth, truth, truth},
                             {{box("a", 0, 0, 40, 30), box("a", 50, 50, 60, 60)},
                              {box("a", 50, 50, 60, 60), box("a", 0, 0, 40, 40)},
                              {}});
  EXPECT_THAT(score.of_samples, ElementsAre(1, 0, 0));
  EXPECT_THAT(score.value, DoubleEq(1 / 3.));
}

}  // namespace
}  // namespace valora::generator
