#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/data/datasets.h"

namespace valora::generator {
namespace {

using ::testing::ElementsAre;

Task task_of(TaskType type) {
  Task task;
  task.name = "one";
  task.type = type;
  return task;
}

Sample filled(const Task& task, Sample sample) {
  std::vector<Sample> samples{std::move(sample)};
  const Status applied = apply_templates(task, samples);
  EXPECT_TRUE(applied.ok()) << applied.error().message;
  return samples[0];
}

TEST(Templates, ClassificationAsksForOneOfItsLabels) {
  Task task = task_of(TaskType::kClassification);
  std::vector<Sample> samples{{.labels = {"sun"}}, {.labels = {"fog"}}, {.labels = {"sun", "fog"}}};
  ASSERT_TRUE(apply_templates(task, samples).ok());
  EXPECT_EQ(samples[0].question, "Which of these is it: fog, sun?");
  EXPECT_EQ(samples[0].answer, "sun");
  EXPECT_EQ(samples[2].answer, "sun, fog");
  task.labels = {"sun", "{label}"};
  EXPECT_EQ(filled(task, {.labels = {"sun"}}).question, "Which of these is it: sun, {label}?");
}

TEST(Templates, QuestionAnsweringTrainsOnTheMostFrequentAnswer) {
  Task task = task_of(TaskType::kQuestionAnswering);
  EXPECT_EQ(filled(task, {.question = "q {labels}", .references = {"b", "a", "c", "a"}}).answer,
            "a");
  EXPECT_EQ(filled(task, {.question = "q {labels}", .references = {"b", "a"}}).answer, "b");
  EXPECT_EQ(filled(task, {.question = "q {labels}", .answer = "x"}).question, "q {labels}")
      << "asked as it is";
  EXPECT_EQ(filled(task, {.question = "q", .answer = "x", .references = {"y", "y"}}).answer, "x");
  std::vector<Sample> samples{{.origin = "data.jsonl:3", .answer = "x"}};
  EXPECT_EQ(apply_templates(task, samples).error().message,
            "data.jsonl:3: there is no question, and the task has none");
  task.question = "What is it?";
  EXPECT_EQ(filled(task, {.answer = "x"}).question, "What is it?");
}

TEST(Templates, CaptionAndVideoQuestionsMatchThePaper) {
  const Sample caption =
      filled(task_of(TaskType::kCaptioning), {.references = {"a dog", "a cat", "a cat"}});
  EXPECT_EQ(caption.question, "Generate the caption in English:");
  EXPECT_EQ(caption.answer, "a dog");
  const Sample video = filled(task_of(TaskType::kVideo), {.labels = {"boxing"}});
  EXPECT_EQ(video.question,
            "Please analyze the consecutive frames sequence and identify the actions occurring in "
            "the video.");
  EXPECT_EQ(video.answer, "boxing");
  EXPECT_EQ(filled(task_of(TaskType::kVideo), {.answer = "a man boxes"}).answer, "a man boxes");
}

TEST(Templates, BoxQuestionsNameTheLabels) {
  Task task = task_of(TaskType::kDetection);
  task.boxes.scale = 100;
  const LabelledBox car{"car", {0, 0, 0.5, 1}}, dog{"dog", {0.5, 0, 1, 1}};
  const Sample detection = filled(task, {.boxes = {car, dog, car}});
  EXPECT_EQ(detection.question,
            "Please box all the objects in the picture that you think are car, dog.");
  EXPECT_EQ(detection.answer,
            "<ref>car</ref><box>(0,0),(50,100)</box><box>(0,0),(50,100)</box>"
            "<ref>dog</ref><box>(50,0),(100,100)</box>");
  const Sample grounding = filled(task_of(TaskType::kGrounding), {.boxes = {car}});
  EXPECT_EQ(grounding.question, "Box the car in the picture.");
  EXPECT_EQ(grounding.answer, "<ref>car</ref><box>(0,0),(500,1000)</box>");

  std::vector<Sample> samples{{.origin = "data.jsonl:3"}};
  EXPECT_EQ(apply_templates(task, samples).error().message,
            "data.jsonl:3: there is no labelled box, nor labels of the task, for the {label} in "
            "its question");
  task.labels = {"car", "dog"};
  EXPECT_EQ(filled(task, {}).question,
            "Please box all the objects in the picture that you think are car, dog.");
  EXPECT_EQ(filled(task, {}).answer, "none");
}

TEST(LabelsOf, ReturnsTheTasksLabelsOrThoseOfItsSamples) {
  Task task = task_of(TaskType::kClassification);
  EXPECT_THAT(*labels_of(task, {{.labels = {"b"}}, {.labels = {"c", "a"}}, {.labels = {"b"}}}),
              ElementsAre("a", "b", "c"));
  EXPECT_THAT(*labels_of(task, {{.boxes = {{"car", {0, 0, 1, 1}}}}}), ElementsAre("car"));
  EXPECT_EQ(labels_of(task, {}).error().message,
            "the task one has no labels, and its samples have none");
  task.labels = {"z", "y"};
  EXPECT_THAT(*labels_of(task, {}), ElementsAre("z", "y"));
}

TEST(Templates, ValidationQuestionsUseTrainingLabels) {
  Task task = task_of(TaskType::kDetection);
  task.question = "Box all of {labels}.";
  const std::vector<Sample> training{{.boxes = {{"car", {0, 0, 1, 1}}, {"bus", {0, 0, 1, 1}}}}};
  const auto labels = question_labels(task, training);
  ASSERT_TRUE(labels.ok());
  std::vector<Sample> validation{{.boxes = {{"car", {0, 0, 1, 1}}}}};
  ASSERT_TRUE(apply_templates(task, validation, *labels).ok());
  EXPECT_EQ(validation[0].question, "Box all of bus, car.");
  task.question = "Box everything.";
  EXPECT_TRUE(question_labels(task, training)->empty());
}

TEST(CommonQuestion, EqualsTheQuestionOfTheSamples) {
  Task task = task_of(TaskType::kClassification);
  const std::vector<Sample> samples{{.labels = {"sun"}}, {.labels = {"fog"}}};
  EXPECT_EQ(*common_question(task, samples), "Which of these is it: fog, sun?");
  task.question = "{labels}?";
  EXPECT_EQ(*common_question(task, samples), "fog, sun?");
  EXPECT_EQ(*common_question(task, {{.question = "Own?", .labels = {"sun"}},
                                    {.question = "Own?", .labels = {"fog"}}}),
            "Own?")
      << "the template is never asked";
  EXPECT_EQ(*common_question(task, {{.question = "Own?", .labels = {"sun"}}, {.labels = {"fog"}}}),
            "fog, sun?");
  EXPECT_EQ(*common_question(task_of(TaskType::kQuestionAnswering),
                             {{.question = "a?"}, {.question = "b?"}}),
            "");
}

TEST(CommonQuestion, KeepsThePlaceholderIfLabelsDiffer) {
  Task task = task_of(TaskType::kGrounding);
  const Sample car{.boxes = {{"car", {0, 0, 1, 1}}}}, bus{.boxes = {{"bus", {0, 0, 1, 1}}}};
  EXPECT_EQ(*common_question(task, {car, bus}), "Box the {label} in the picture.");
  EXPECT_EQ(*common_question(task, {car, car}), "Box the car in the picture.");
  task.question = "Of {labels}, box the {label}.";
  EXPECT_EQ(*common_question(task, {car, bus}), "Of bus, car, box the {label}.");
}

TEST(AnswerLabels, ReturnsLabelsOnlyForAClosedSet) {
  const std::vector<Sample> samples{{.boxes = {{"car", {0, 0, 1, 1}}, {"bus", {0, 0, 1, 1}}}}};
  EXPECT_THAT(answer_labels(task_of(TaskType::kDetection), samples), ElementsAre("bus", "car"));
  Task grounding = task_of(TaskType::kGrounding);
  EXPECT_THAT(answer_labels(grounding, samples), ElementsAre()) << "any expression";
  grounding.train = DataSource{.format = DataSource::Format::kCoco};
  EXPECT_THAT(answer_labels(grounding, samples), ElementsAre("bus", "car")) << "categories";
  grounding.labels = {"van"};
  EXPECT_THAT(answer_labels(grounding, samples), ElementsAre("van"));
  EXPECT_THAT(answer_labels(task_of(TaskType::kVideo), {{.answer = "a man runs"}}), ElementsAre());
}

}  // namespace
}  // namespace valora::generator
