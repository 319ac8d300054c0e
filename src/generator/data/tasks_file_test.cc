#include "generator/data/tasks_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/data/testing/tasks_file.h"

namespace valora::generator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(TasksFile, ReadsEveryFieldOfATask) {
  const auto tasks = read(R"(
tasks:
  - name: weather.2
    type: classification
    train: {path: a.jsonl, media_root: pictures, limit: 20}
    validation: classes
    metric: exact
    floor: 0.75
    labels: [0, no, "sun"]
    weight: 2.5
    question: "Which of {labels}?"
    max_answer_tokens: 8
  - {name: cars, type: detection, train: boxes.json, validation: {format: jsonl, path: boxes.json},
     boxes: {scale: 100, labels: false}}
)");
  ASSERT_TRUE(tasks.ok()) << tasks.error().message;
  ASSERT_EQ(tasks->size(), 2u);
  const Task& weather = (*tasks)[0];
  EXPECT_EQ(weather.name, "weather.2");
  EXPECT_EQ(weather.type, TaskType::kClassification);
  EXPECT_EQ(weather.train->format, DataSource::Format::kJsonl);
  EXPECT_EQ(weather.train->path, dir_.file("a.jsonl"));
  EXPECT_EQ(weather.train->media_root, dir_.file("pictures"));
  EXPECT_EQ(weather.train->limit, 20);
  EXPECT_EQ(weather.validation->format, DataSource::Format::kFolder);
  EXPECT_EQ(weather.metric, Metric::kExact);
  EXPECT_EQ(weather.floor, 0.75);
  EXPECT_THAT(weather.labels, ElementsAre("0", "no", "sun"));
  EXPECT_EQ(weather.weight, 2.5);
  EXPECT_EQ(weather.question, "Which of {labels}?");
  EXPECT_EQ(weather.max_answer_tokens, 8);
  EXPECT_FALSE(weather.head || weather.teacher);
  EXPECT_EQ(weather.where, dir_.file("tasks.yaml") + ":3");
  const Task& cars = (*tasks)[1];
  EXPECT_EQ(cars.train->format, DataSource::Format::kCoco);
  EXPECT_EQ(cars.validation->format, DataSource::Format::kJsonl);
  EXPECT_EQ(cars.metric, Metric::kF1AtIou);
  EXPECT_EQ(cars.boxes.scale, 100);
  EXPECT_FALSE(cars.boxes.labels);
  EXPECT_FALSE(cars.floor);
  EXPECT_EQ(cars.max_answer_tokens, 64);
}

TEST_F(TasksFile, JsonIsReadLikeYaml) {
  const auto tasks = read(
      "{\n\t\"tasks\": "
      "[\n\t\t{\"name\":\"one\",\"type\":\"video\",\"train\":\"a.jsonl\",\"validation\":\"b."
      "jsonl\",\n"
      "\t\t \"floor\":0.5,\"head\":{\"name\":\"action\",\"multi_label\":true}}\n\t]\n}\n");
  ASSERT_TRUE(tasks.ok()) << tasks.error().message;
  EXPECT_EQ(tasks->at(0).floor, 0.5);
  EXPECT_EQ(tasks->at(0).head->name, "action");
  EXPECT_TRUE(tasks->at(0).head->multi_label);
}

TEST_F(TasksFile, HeadAcceptsThreeForms) {
  EXPECT_EQ(with("    head: true\n")->at(0).head->name, "score");
  EXPECT_EQ(with("    head: mood\n")->at(0).head->name, "mood");
  EXPECT_FALSE(with("    head: false\n")->at(0).head);
  EXPECT_TRUE(with("    head: {multi_label: true}\n")->at(0).head->multi_label);
  EXPECT_EQ(error(with("    head: [a]\n")),
            at(6) + "\"head\": expected keys with values (name, multi_label), not a list");
  EXPECT_EQ(error(with("    metric: exact\n    head: true\n")),
            at(7) + "\"head\" answers with labels: its metric is top1");
  EXPECT_EQ(error(with("    head: true\n", "captioning")),
            at(6) + "\"head\" answers with labels, which does not fit captioning");
}

TEST_F(TasksFile, ActivationAcceptsThreeForms) {
  EXPECT_FALSE(with("")->at(0).activation);
  EXPECT_TRUE(with("    activation: true\n")->at(0).activation->tried);
  EXPECT_EQ(with("    activation: true\n")->at(0).activation->invocation, "");
  EXPECT_FALSE(with("    activation: false\n")->at(0).activation->tried);
  EXPECT_EQ(with("    activation: {invocation: \"<judge>\"}\n")->at(0).activation->invocation,
            "<judge>");
  EXPECT_EQ(error(with("    activation: {}\n")), at(6) + "\"activation.invocation\" is missing");
  EXPECT_EQ(error(with("    activation: yes\n")),
            at(6) + "\"activation\": expected keys with values (invocation), not \"yes\"");
}

TEST_F(TasksFile, DefaultMetricFollowsTheTaskType) {
  for (const TaskType type : kTaskTypes) {
    if (type == TaskType::kClassification) continue;
    const auto tasks = with("", task_type_name(type));
    ASSERT_TRUE(tasks.ok()) << tasks.error().message;
    EXPECT_EQ(tasks->at(0).type, type);
    EXPECT_EQ(tasks->at(0).metric, metrics_of(type).front());
  }
  EXPECT_EQ(with("    metric: rouge_l\n", "captioning")->at(0).metric, Metric::kRougeL);
  EXPECT_EQ(
      error(with("    metric: cider\n", "grounding")),
      at(6) + "\"metric\" cider does not fit grounding, which is measured by box_accuracy, f1");
  EXPECT_EQ(error(with("    metric: top2\n")),
            at(6) + "\"metric\" is \"top2\", did you mean \"top1\"?");
}

TEST_F(TasksFile, UnknownKeyErrorSuggestsTheNearest) {
  EXPECT_EQ(error(with("    wieght: 2\n")),
            at(6) + "unknown key \"wieght\", did you mean \"weight\"?");
  EXPECT_EQ(error(with("    boxes: {scael: 2}\n", "detection")),
            at(6) + "unknown key \"boxes.scael\", did you mean \"scale\"?");
  EXPECT_EQ(error(read("tasks: []\nother: 1\n")),
            at(2) + "unknown key \"other\"; known: tasks, prepare");
  EXPECT_EQ(error(with("", "detektion")),
            at(3) + "\"type\" is \"detektion\", did you mean \"detection\"?");
}

TEST_F(TasksFile, ValuesOutsideTheirRangeAreErrors) {
  const std::pair<const char*, const char*> wrong[] = {
      {"floor: 1.5", "\"floor\" must be a number from 0 to 1, not \"1.5\""},
      {"floor: nan", "\"floor\" must be a number from 0 to 1, not \"nan\""},
      {"floor: \"0.5\"", "\"floor\" must be a number from 0 to 1, not \"0.5\""},
      {"floor:", "\"floor\" must be a number from 0 to 1, not nothing"},
      {"weight: 0", "\"weight\" must be above 0"},
      {"max_answer_tokens: 1.5",
       "\"max_answer_tokens\" must be an integer from 1 to 65536, not \"1.5\""},
      {"labels: cat", "\"labels\" must be a list of texts, not \"cat\""},
      {"labels: []", "\"labels\" must not be empty"},
      {"labels: [a, null]", "\"labels\" must be a list of texts; one of them is nothing"},
      {"labels: [a, a]", "\"labels\" has \"a\" twice"},
      {"labels: [a]", "\"labels\" has one label; a classification needs two"},
      {"boxes: {scale: 5}", "\"boxes\" does not fit classification"},
      {"question: \"Is it {label}?\"",
       "\"question\" has {label}, which classification does not fill in; all labels are {labels}"},
      {"question: \"\"", "\"question\" must not be empty"},
      {"teacher: {kind: adapter, path: classes, inputs: pictures}",
       "\"teacher\" replaces \"train\"; give one of them"}};
  for (const auto& [line, message] : wrong)
    EXPECT_EQ(error(with("    " + std::string(line) + "\n")), at(6) + message);
  EXPECT_EQ(error(with("    labels: [a, b]\n", "captioning")),
            at(6) + "\"labels\" does not fit captioning");
  EXPECT_EQ(error(with("    boxes: {scale: 0}\n", "detection")),
            at(6) + "\"boxes.scale\" must be an integer from 1 to 1000000, not \"0\"");
}

TEST_F(TasksFile, NamesMustBeSafeAndUnique) {
  for (const char* name : {"..", ".a", "-a", "a/b", "a b", "ä"})
    EXPECT_THAT(error(read("tasks:\n- type: video\n  name: \"" + std::string(name) + "\"\n")),
                StartsWith(at(3) + "\"name\" is \"" + name + "\": up to 128 letters"));
  const std::string task = "- {name: a, type: video, train: a.jsonl, validation: b.jsonl}\n";
  EXPECT_EQ(error(read("tasks:\n" + task + task)),
            at(3) + "\"name\": a is also the task at " + dir_.file("tasks.yaml") + ":2");
}

TEST_F(TasksFile, MissingFieldsAreNamed) {
  EXPECT_EQ(error(read("")), at(1) + "expected keys with values (tasks, prepare), not nothing");
  EXPECT_EQ(error(read("{}")), at(1) + "\"tasks\" is missing");
  EXPECT_EQ(error(read("tasks: []")), at(1) + "\"tasks\" must be a list of at least one task");
  EXPECT_EQ(error(read("tasks:\n- a\n")),
            at(2) +
                "expected keys with values (name, type, train, validation, teacher, metric, "
                "floor, labels, head, weight, question, boxes, activation, max_answer_tokens), not "
                "\"a\"");
  EXPECT_EQ(error(read("tasks:\n\n- type: video\n")), at(3) + "\"name\" is missing");
  EXPECT_EQ(error(read("tasks:\n- name: a\n")), at(2) + "\"type\" is missing");
  EXPECT_EQ(error(taught("video", "")), at(2) + "\"train\" is missing, and there is no teacher");
  EXPECT_EQ(error(taught("video", "    train: a.jsonl\n")), at(2) + "\"validation\" is missing");
  EXPECT_EQ(error(read_tasks(dir_.file("none.yaml"))), dir_.file("none.yaml") + " does not exist");
}

TEST_F(TasksFile, MissingDataErrorNamesThePrepareCommand) {
  const auto missing = read_tasks(dir_.write(
      "made.yaml",
      "prepare: make data\ntasks:\n- {name: a, type: video, train: x, validation: x}\n"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(missing.error().message.ends_with(
      "which does not exist; to prepare the data of this file: make data"))
      << missing.error().message;
  const auto wrong = read_tasks(
      dir_.write("made.yaml", "prepare: make data\ntasks:\n- {name: a, type: none, train: x}\n"));
  EXPECT_EQ(wrong.error().message.find("made by"), std::string::npos);
}

TEST_F(TasksFile, SourcesMustExistAndFitTheTaskType) {
  const std::pair<const char*, std::string> wrong[] = {
      {"c.jsonl", "\"train\" leads to " + dir_.file("c.jsonl") + ", which does not exist"},
      {"boxes.json", "\"train\" is COCO's JSON, which does not fit question_answering"},
      {"classes", "\"train\" is one folder per class, which does not fit question_answering"},
      {"teacher.pt", "\"train\" leads to " + dir_.file("teacher.pt") +
                         ": neither a folder nor .jsonl nor .json, so give its \"format\""},
      {"{path: a.jsonl, format: csv}", "\"train.format\" is \"csv\"; known: jsonl, coco, folder"},
      {"{path: a.jsonl, format: folder}",
       "\"train.path\" leads to " + dir_.file("a.jsonl") + ", a file"},
      {"{path: classes, format: jsonl}",
       "\"train.path\" leads to " + dir_.file("classes") + ", a folder"},
      {"{path: a.jsonl, limit: 0}",
       "\"train.limit\" must be an integer from 1 to 9223372036854775807, not \"0\""},
      {"{path: a.jsonl, media_root: b.jsonl}",
       "\"train.media_root\" leads to " + dir_.file("b.jsonl") + ", a file"},
      {"{limit: 1}", "\"train.path\" is missing"},
      {"[a.jsonl]",
       "\"train\": expected keys with values (format, path, media_root, limit), not a list"}};
  for (const auto& [source, message] : wrong)
    EXPECT_EQ(error(taught("question_answering", "    train: " + std::string(source) + "\n")),
              at(4) + message);
}

TEST_F(TasksFile, YamlErrorsNameFileAndLine) {
  EXPECT_EQ(error(read("tasks:\n- name: a\n  name: b\n")),
            at(3) + "the key \"name\" appears twice");
  EXPECT_EQ(read(std::string((4u << 20) + 1, ' ')).error().code, ErrorCode::kPayloadTooLarge);
}

TEST(TaskNames, TypesAndMetricsRoundTripThroughTheirNames) {
  for (const TaskType type : kTaskTypes) EXPECT_EQ(parse_task_type(task_type_name(type)), type);
  for (const Metric metric : kMetrics) EXPECT_EQ(parse_metric(metric_name(metric)), metric);
  EXPECT_EQ(parse_task_type("Video"), std::nullopt);
  EXPECT_EQ(parse_metric(""), std::nullopt);
}

}  // namespace
}  // namespace valora::generator
