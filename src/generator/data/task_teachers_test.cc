#include <gmock/gmock.h>

#include "generator/data/testing/tasks_file.h"

namespace valora::generator {
namespace {

using ::testing::ElementsAre;

TEST_F(TasksFile, ReadsTeachers) {
  const auto tasks = taught("classification", R"(    labels: [a, b]
    teacher:
      {kind: torchscript, path: teacher.pt, inputs: pictures, output: scores, size: [32, 48], mean: [0.5], std: [0.25],
       channels: 1, confidence: 0.75, validation_share: 0.2}
)");
  ASSERT_TRUE(tasks.ok()) << tasks.error().message;
  const TeacherSource& teacher = *tasks->at(0).teacher;
  EXPECT_EQ(teacher.kind, TeacherSource::Kind::kTorchScript);
  EXPECT_EQ(teacher.path, dir_.file("teacher.pt"));
  EXPECT_EQ(teacher.inputs.path, dir_.file("pictures"));
  EXPECT_EQ(teacher.inputs.format, DataSource::Format::kFolder);
  EXPECT_EQ(teacher.output, TeacherSource::Output::kScores);
  EXPECT_EQ(teacher.width, 32);
  EXPECT_EQ(teacher.height, 48);
  EXPECT_THAT(teacher.mean, ElementsAre(0.5));
  EXPECT_THAT(teacher.deviation, ElementsAre(0.25));
  EXPECT_EQ(teacher.channels, 1);
  EXPECT_EQ(teacher.confidence, 0.75);
  EXPECT_EQ(teacher.validation_share, 0.2);
  EXPECT_FALSE(tasks->at(0).train || tasks->at(0).validation);

  const auto endpoint =
      taught("captioning",
             "    teacher: {kind: endpoint, url: \"http://127.0.0.1:1/v1\", model: m,\n"
             "              inputs: a.jsonl}\n");
  ASSERT_TRUE(endpoint.ok()) << endpoint.error().message;
  EXPECT_EQ(endpoint->at(0).teacher->url, "http://127.0.0.1:1/v1");
  EXPECT_EQ(endpoint->at(0).teacher->model, "m");
  const auto adapter =
      taught("video", "    teacher: {kind: adapter, path: classes, inputs: a.jsonl}\n");
  ASSERT_TRUE(adapter.ok()) << adapter.error().message;
  EXPECT_EQ(adapter->at(0).teacher->kind, TeacherSource::Kind::kAdapter);
}

TEST_F(TasksFile, InvalidTeachersAreRefused) {
  const std::string script = "kind: torchscript, path: teacher.pt, inputs: pictures";
  const std::pair<std::string, const char*> wrong[] = {
      {script, "\"teacher.output\" is missing"},
      {script + ", output: score", "\"teacher.output\" is \"score\", did you mean \"scores\"?"},
      {script + ", output: boxes", "\"teacher.output\" boxes does not fit classification"},
      {script + ", output: scores, size: [1]",
       "\"teacher.size\" must be [width, height], integers from 1 to 8192"},
      {script + ", output: scores, size: [1.5, 2]",
       "\"teacher.size\" must be [width, height], integers from 1 to 8192"},
      {script + ", output: scores, size: [1e99, 2]",
       "\"teacher.size\" must be [width, height], integers from 1 to 8192"},
      {script + ", output: scores, channels: 2", "\"teacher.channels\" must be 3, or 1 for grey"},
      {script + ", output: scores, mean: [1]",
       "\"teacher.mean\" must have 3 numbers, one per channel, not 1"},
      {script + ", output: scores, mean: [1, 1, 1]",
       "\"teacher.std\" must have 3 numbers, one per channel, not 0"},
      {script + ", output: scores, mean: [1, 1, 1], std: [1, 0, 1]",
       "\"teacher.std\" must be above 0"},
      {script + ", output: scores, url: x", "\"teacher.url\" is for an endpoint alone"},
      {script + ", output: scores, confidence: 2",
       "\"teacher.confidence\" must be a number from 0 to 1, not \"2\""},
      {"kind: endpoint, url: ftp, model: m, inputs: a.jsonl",
       "\"teacher.url\" must begin with http:// or https://"},
      {"kind: endpoint, url: http://x, model: m, inputs: boxes.json",
       "\"teacher.inputs\" must be a folder or a JSONL file, not COCO's JSON"},
      {"kind: endpoint, url: http://x, model: m", "\"teacher.inputs\" is missing"},
      {"kind: adapter, path: classes, inputs: a.jsonl, size: [1, 1]",
       "\"teacher.size\" is for a torchscript teacher alone"},
      {"kind: model", "\"teacher.kind\" is \"model\"; known: torchscript, endpoint, adapter"}};
  for (const auto& [keys, message] : wrong)
    EXPECT_EQ(error(taught("classification", "    labels: [a, b]\n    teacher: {" + keys + "}\n")),
              at(5) + message);
  EXPECT_EQ(error(taught("classification", "    teacher: {" + script + ", output: scores}\n")),
            at(2) + "\"labels\" is missing: the classes of a torchscript teacher, in its order");
  const std::string adapter = "    teacher: {kind: adapter, path: classes, inputs: a.jsonl";
  EXPECT_EQ(error(taught("video", adapter + ", validation_share: 0}\n")),
            at(2) + "\"validation\" is missing, and teacher.validation_share is 0");
  EXPECT_EQ(error(taught("video", adapter + "}\n    head: true\n")),
            at(2) + "\"labels\" is missing: a head needs them before the teacher has answered");
}

}  // namespace
}  // namespace valora::generator
