// Tests which samples of a teacher are kept, dropped and counted, with an adapter as the teacher.
// tests/generator/test_teachers.py tests TorchScript files and endpoints.
#include "generator/teacher.h"

#include <gtest/gtest.h>

#include "api/testing/fake_engine.h"
#include "base/testing/temp_dir.h"

namespace valora::generator {
namespace {

using valora::testing::FakeEngine;
using valora::testing::Reply;
using valora::testing::say;
using valora::testing::TempDir;
using valora::testing::text_of;

class AdapterTeacher : public ::testing::Test {
 protected:
  AdapterTeacher() {
    std::string lines;
    for (int i = 0; i < kInputs; ++i) {
      dir_.write(std::to_string(i) + ".png", "never decoded here");
      lines += R"({"image": ")" + std::to_string(i) + R"(.png", "question": ")" +
               std::to_string(i) + "\"}\n";
    }
    task_.name = "parity";
    task_.where = "tasks.yaml:1";
    task_.metric = Metric::kTop1;
    task_.labels = {"even", "odd"};
    task_.teacher.emplace();
    task_.teacher->kind = TeacherSource::Kind::kAdapter;
    task_.teacher->path = "/adapters/parity";
    task_.teacher->inputs = {DataSource::Format::kJsonl, dir_.write("inputs.jsonl", lines), {}, {}};
    task_.teacher->validation_share = 0.25;
    task_.teacher->confidence = 0.5;
  }

  static constexpr int kInputs = 12;
  TempDir dir_;
  Task task_;
};

// Answers 0 with text that is not a label, and 1 with low confidence.
Reply unsure_parity(const GenerateRequest& request) {
  const int number = std::stoi(text_of(request.prompt));
  if (number == 0) return say("neither", {0});
  return say(number % 2 ? "odd" : "even", {number == 1 ? -3.0f : -0.1f});
}

TEST_F(AdapterTeacher, KeepsConfidentAnswers) {
  FakeEngine engine({.script = unsure_parity, .newest_first = {{.total = kInputs}}});
  const auto data = ask_teacher(task_, &engine);
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->counts.asked, 12);
  EXPECT_EQ(data->counts.kept, 10);
  EXPECT_EQ(data->counts.foreign, 1);
  EXPECT_EQ(data->counts.unsure, 1);
  EXPECT_EQ(data->counts.unrated, 0);
  EXPECT_EQ(data->counts.labels, (std::map<std::string, int64_t>{{"even", 5}, {"odd", 5}}));
  EXPECT_EQ(data->train.size(), 7u);
  EXPECT_EQ(data->validation.size(), 3u);
  for (const Sample& sample : data->train) {
    EXPECT_EQ(sample.labels,
              std::vector<std::string>{std::stoi(sample.question) % 2 ? "odd" : "even"});
    EXPECT_EQ(sample.media.size(), 1u);
  }
  EXPECT_TRUE(engine.adapters().empty()) << "the adapter is a guest";
  EXPECT_EQ(engine.requests().front().sampling.temperature, 0);
  EXPECT_EQ(engine.requests().front().head, "");
}

TEST_F(AdapterTeacher, TakesNoValidationSplitIfTheTaskHasOne) {
  FakeEngine engine({.script = unsure_parity, .newest_first = {{.total = kInputs}}});
  task_.validation.emplace();
  const auto data = ask_teacher(task_, &engine);
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->train.size(), 10u);
  EXPECT_TRUE(data->validation.empty());
}

TEST_F(AdapterTeacher, HeadProbabilityIsTheConfidence) {
  const auto script = [](const GenerateRequest& request) {
    const int number = std::stoi(text_of(request.prompt));
    Classification c{*request.head, {"even", "odd"}, {0, 0}, {0.6f, 0.4f}, 0};
    if (number % 2) c = {*request.head, {"even", "odd"}, {0, 0}, {0.45f, 0.55f}, 1};
    return Reply{.classification = c};
  };
  FakeEngine engine({.script = script, .newest_first = {{.total = kInputs}}});
  engine.set_heads({{"parity", {"even", "odd"}}});
  task_.teacher->confidence = 0.58;
  const auto data = ask_teacher(task_, &engine);
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->counts.labels, (std::map<std::string, int64_t>{{"even", 6}}));
  EXPECT_EQ(data->counts.unsure, 6);
  EXPECT_EQ(engine.requests().front().head, "parity");

  engine.set_heads({{"a", {"even", "odd"}}, {"b", {"even", "odd"}}});
  EXPECT_NE(ask_teacher(task_, &engine).error().message.find("several heads (a, b)"),
            std::string::npos);
}

TEST_F(AdapterTeacher, LabelsTextTasksWithItsAnswers) {
  const auto script = [](const GenerateRequest& request) {
    const std::string question = text_of(request.prompt);
    return say(question == "3" ? " \n" : " about " + question);
  };
  FakeEngine engine({.script = script, .newest_first = {{.total = kInputs}}});
  task_.type = TaskType::kQuestionAnswering;
  task_.metric = Metric::kVqa;
  task_.labels.clear();
  task_.teacher->validation_share = 0;
  const auto data = ask_teacher(task_, &engine);
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->counts.empty, 1);
  EXPECT_EQ(data->counts.unrated, 11);
  EXPECT_EQ(data->train.at(4).answer, "about 5");
}

TEST_F(AdapterTeacher, ErrorsNameTheirCause) {
  const auto message = [&](Engine* engine) {
    const auto data = ask_teacher(task_, engine);
    EXPECT_FALSE(data.ok());
    return data.ok() ? std::string() : data.error().message;
  };
  EXPECT_NE(message(nullptr).find("needs the base model's engine"), std::string::npos);
  FakeEngine engine({.script = unsure_parity});
  const std::string path = std::exchange(task_.teacher->path, "/adapters/missing");
  EXPECT_EQ(message(&engine), "teacher /adapters/missing: no such folder");
  task_.teacher->path = path;
  FakeEngine failing(
      {.script = [](const GenerateRequest&) { return Reply{.error = invalid("a broken picture")}; },
       .newest_first = {{.total = kInputs}}});
  EXPECT_NE(message(&failing).find("teacher /adapters/parity: "), std::string::npos);
  EXPECT_NE(message(&failing).find("inputs.jsonl:"), std::string::npos);
  EXPECT_TRUE(failing.adapters().empty());
  FakeEngine useless({.script = [](const GenerateRequest&) { return say("maybe", {0}); },
                      .newest_first = {{.total = kInputs}}});
  EXPECT_NE(
      message(&useless).find(
          "taught nothing: of 12 answers 0 are below the confidence, 12 are none of the labels"),
      std::string::npos);
  task_.labels.clear();
  EXPECT_NE(message(&useless).find("needs \"labels\""), std::string::npos);
}

}  // namespace
}  // namespace valora::generator
