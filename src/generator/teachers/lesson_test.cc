#include "generator/teachers/lesson.h"

#include <gtest/gtest.h>

#include <cmath>

#include "generator/data/box_text.h"

namespace valora::generator {
namespace {

Task labelled(TaskType type, std::vector<std::string> labels) {
  Task task;
  task.name = "task";
  task.where = "tasks.yaml:2";
  task.type = type;
  task.metric = Metric::kTop1;
  task.labels = std::move(labels);
  return task;
}

Sample picture(const std::string& name, const std::string& question = {}) {
  Sample sample;
  sample.origin = name;
  sample.media = {{Medium::Kind::kImage, {"/pictures/" + name}}};
  sample.question = question;
  return sample;
}

TEST(Lesson, ReadsTheNamedLabel) {
  const Task task = labelled(TaskType::kClassification, {"cat", "Dog", "dog"});
  const auto read = [&](const std::string& answer) { return read_lesson(task, {}, answer); };
  EXPECT_EQ(read(" cat\n").labels, std::vector<std::string>{"cat"});
  EXPECT_EQ(read("CAT.").labels, std::vector<std::string>{"cat"});
  EXPECT_EQ(read("dog").labels, std::vector<std::string>{"dog"}) << "letter for letter comes first";
  for (const char* foreign : {"", "a cat", "cat, dog", "horse"})
    EXPECT_TRUE(read(foreign).foreign) << foreign;
}

TEST(Lesson, ReadsSeveralLabelsForAMultiLabelHead) {
  Task task = labelled(TaskType::kClassification, {"rain", "wind"});
  task.head = HeadSpec{"weather", true};
  EXPECT_EQ(read_lesson(task, {}, "wind, Rain").labels, (std::vector<std::string>{"wind", "rain"}));
  EXPECT_TRUE(read_lesson(task, {}, "wind, snow").foreign);
}

TEST(Lesson, ReadsOnlyBoxesWithLabelsOfTheTask) {
  Task task = labelled(TaskType::kDetection, {"car", "bus"});
  task.boxes = {100, true};
  const Lesson lesson = read_lesson(
      task, {}, "<ref>car</ref><box>(10,20),(30,60)</box><ref>tree</ref><box>(1,1),(2,2)</box>");
  ASSERT_EQ(lesson.boxes.size(), 1u);
  EXPECT_EQ(lesson.boxes[0].label, "car");
  EXPECT_DOUBLE_EQ(lesson.boxes[0].box.y1, 0.6);
  EXPECT_EQ(lesson.foreign_boxes, 1);
  task.labels = {"car"};
  EXPECT_EQ(read_lesson(task, {}, "[1,2,3,4]").boxes.at(0).label, "car") << "there is no other";
}

TEST(Lesson, ConfidenceIsTheMeanProbability) {
  EXPECT_FALSE(confidence_of({}));
  const std::vector<float> logprobs{std::log(0.5f), 0};
  EXPECT_NEAR(*confidence_of(logprobs), 0.75, 1e-6);
}

TEST(Questions, ComeFromTheTemplateOrTheInput) {
  const Task task = labelled(TaskType::kClassification, {"cat", "dog"});
  const auto questions = questions_of(task, {picture("a.png"), picture("b.png", "Which pet?")});
  ASSERT_TRUE(questions.ok()) << questions.error().message;
  ASSERT_EQ(questions->size(), 2u);
  EXPECT_NE((*questions)[0].text.find("cat, dog"), std::string::npos);
  EXPECT_TRUE((*questions)[0].input.question.empty())
      << "left for the training data's own template";
  EXPECT_EQ((*questions)[1].text, "Which pet?");
}

TEST(Questions, AskForEachLabelInGrounding) {
  Task task = labelled(TaskType::kGrounding, {"car", "bus"});
  task.boxes = {100, true};
  const auto questions = questions_of(task, {picture("a.png"), picture("b.png", "Where is it?")});
  ASSERT_TRUE(questions.ok()) << questions.error().message;
  ASSERT_EQ(questions->size(), 3u);
  const Question& bus = (*questions)[1];
  EXPECT_EQ(bus.text, "Box the bus in the picture.");
  EXPECT_EQ(bus.input.origin, "a.png (bus)");
  EXPECT_EQ(read_lesson(task, bus, "[1,2,3,4]").boxes.at(0).label, "bus");
  EXPECT_EQ(read_lesson(task, bus, "<ref>car</ref><box>(1,2),(3,4)</box>").foreign_boxes, 1);
  task.labels.clear();
  EXPECT_NE(questions_of(task, {picture("a.png")})
                .error()
                .message.find("tasks.yaml:2: task task needs \"labels\""),
            std::string::npos);
  EXPECT_TRUE(questions_of(task, {picture("b.png", "Where is it?")}).ok());
}

}  // namespace
}  // namespace valora::generator
