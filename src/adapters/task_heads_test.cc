#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/testing/adapter_folder.h"

namespace valora::adapters {
namespace {

using testing::AdapterFolder;
using ::testing::ElementsAre;
using testing::filled;
using ::testing::HasSubstr;
using testing::kHidden;

Json head_notes(const std::string& name, const Json& more = Json::object()) {
  Json notes = {{"name", name}};
  notes.update(more);
  return notes;
}

TEST(TaskHeads, ReadsSeveralWithTheirLabels) {
  AdapterFolder folder;
  folder.add_head("score", 3);
  folder.add_head("classifier", 2);
  folder.tensors[AdapterFolder::key("classifier", "bias")] = filled({2}, 7);
  folder.sidecar = {{"task", "classify"},
                    {"description", "d"},
                    {"question", "q?"},
                    {"heads",
                     {head_notes("score", {{"labels", {"cat", "dog", "é"}},
                                           {"problem_type", "multi_label_classification"},
                                           {"pooling", "last"},
                                           {"add_generation_prompt", true}})}}};
  const auto spec = folder.read();
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  ASSERT_EQ(spec->heads.size(), 2u);
  const TaskHead &classifier = spec->heads[0], &score = spec->heads[1];
  EXPECT_EQ(classifier.name, "classifier");
  EXPECT_THAT(classifier.labels.list(), ElementsAre("LABEL_0", "LABEL_1"));
  EXPECT_EQ(classifier.problem_type, ProblemType::kSingleLabel);
  EXPECT_FALSE(classifier.add_generation_prompt);
  ASSERT_TRUE(classifier.bias.has_value());
  EXPECT_EQ(classifier.bias->shape, (std::vector<int64_t>{2}));
  EXPECT_EQ(score.weight.shape, (std::vector<int64_t>{3, kHidden}));
  EXPECT_FALSE(score.bias.has_value());
  EXPECT_THAT(score.labels.list(), ElementsAre("cat", "dog", "é"));
  EXPECT_EQ(score.problem_type, ProblemType::kMultiLabel);
  EXPECT_TRUE(score.add_generation_prompt);
  EXPECT_EQ(spec->task, "classify");
  EXPECT_EQ(spec->description, "d");
  EXPECT_EQ(spec->question, "q?");
  EXPECT_TRUE(spec->warnings.empty());
}

TEST(TaskHeads, OneRowDefaultsToRegression) {
  AdapterFolder folder;
  folder.add_head("score", 1);
  EXPECT_EQ(folder.read()->heads[0].problem_type, ProblemType::kRegression);
  folder.sidecar = {
      {"heads", {head_notes("score", {{"problem_type", "single_label_classification"}})}}};
  EXPECT_EQ(folder.read()->heads[0].problem_type, ProblemType::kSingleLabel);
}

TEST(TaskHeads, HeadWithoutLoraIsAccepted) {
  AdapterFolder folder;
  folder.tensors.clear();
  folder.config["target_modules"] = Json::array();
  folder.add_head("score", 2);
  const auto spec = folder.read();
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_TRUE(spec->targets.empty());
  EXPECT_EQ(spec->max_rank, 0);
  EXPECT_EQ(spec->heads.size(), 1u);
}

TEST(TaskHeads, RefusesHeadsOtherThanOneLinear) {
  for (const auto& shape : std::vector<std::vector<int64_t>>{{2, 5}, {4}, {0, 4}, {2, 4, 1}, {}}) {
    AdapterFolder folder;
    folder.add_head("score", 2);
    folder.tensors[AdapterFolder::key("score", "weight")] = filled(shape, 0);
    EXPECT_THAT(folder.refusal(), HasSubstr("only one linear layer [labels, 4] can be served"));
  }
  AdapterFolder bias;
  bias.add_head("score", 2);
  bias.tensors[AdapterFolder::key("score", "bias")] = filled({3}, 0);
  EXPECT_THAT(bias.refusal(), HasSubstr("bias of shape [3] but 2 labels"));
  AdapterFolder bias_only;
  bias_only.config["modules_to_save"] = {"score"};
  bias_only.tensors[AdapterFolder::key("score", "bias")] = filled({3}, 0);
  EXPECT_THAT(bias_only.refusal(), HasSubstr("the head score has a bias but no weight"));
  AdapterFolder nested;
  nested.add_head("classifier", 2);
  nested.tensors[AdapterFolder::key("classifier.dense", "weight")] = filled({4, 4}, 0);
  EXPECT_THAT(nested.refusal(), HasSubstr("classifier.dense.weight\" is neither"));
  AdapterFolder unsaved;
  unsaved.add_head("score", 2);
  unsaved.config.erase("modules_to_save");
  EXPECT_THAT(unsaved.refusal(),
              HasSubstr("neither a LoRA weight nor a head named in modules_to_save"));
}

TEST(TaskHeads, MissingTensorsOfModulesToSaveWarn) {
  AdapterFolder folder;
  folder.config["modules_to_save"] = {"score"};
  EXPECT_THAT(folder.read()->warnings, ElementsAre(HasSubstr("modules_to_save names score")));
}

TEST(Sidecar, RefusesMismatchedHeads) {
  const auto refusal = [](const Json& sidecar) {
    AdapterFolder folder;
    folder.add_head("score", 2);
    folder.sidecar = sidecar;
    return folder.refusal();
  };
  const auto with_head = [&](const Json& more) {
    return refusal({{"heads", {head_notes("score", more)}}});
  };
  EXPECT_THAT(with_head({{"labels", {"a"}}}), HasSubstr("1 labels, but its weight has 2 rows"));
  EXPECT_THAT(with_head({{"labels", Json::array()}}),
              HasSubstr("valora.json: \"labels\" must be a list of strings"));
  EXPECT_THAT(with_head({{"labels", {1, 2}}}), HasSubstr("must be a list of strings"));
  EXPECT_THAT(with_head({{"problem_type", "ranking"}}), HasSubstr("problem_type \"ranking\""));
  EXPECT_THAT(with_head({{"pooling", "mean"}}), HasSubstr("pooling \"mean\" is not supported"));
  EXPECT_THAT(with_head({{"add_generation_prompt", "yes"}}), HasSubstr("add_generation_prompt"));
  EXPECT_THAT(refusal({{"heads", {head_notes("other")}}}),
              HasSubstr("describes the head \"other\", for which"));
  EXPECT_THAT(refusal({{"heads", {head_notes("score"), head_notes("score")}}}),
              HasSubstr("described twice"));
  EXPECT_THAT(refusal({{"heads", {Json::object()}}}), HasSubstr("\"name\" is missing"));
  EXPECT_THAT(refusal({{"heads", 3}}), HasSubstr("\"heads\" must be a list"));
  EXPECT_THAT(refusal({{"task", 3}}), HasSubstr("valora.json: \"task\" must be a string"));
  EXPECT_THAT(refusal(Json::array()), HasSubstr("valora.json: not a JSON object"));
}

TEST(Sidecar, TextsAreBounded) {
  const auto refusal = [](const Json& sidecar) {
    AdapterFolder folder;
    folder.add_head("score", 1);
    folder.sidecar = sidecar;
    return folder.refusal();
  };
  EXPECT_EQ(refusal({{"description", std::string(8192, 'x')}}), "accepted");
  for (const char* key : {"description", "question"})
    EXPECT_THAT(refusal({{key, std::string(8193, 'x')}}),
                HasSubstr("\"" + std::string(key) + "\" has 8193 bytes; at most 8192 are read"));
  EXPECT_THAT(refusal({{"task", std::string(257, 'x')}}), HasSubstr("at most 256 are read"));
  const std::string long_label(1025, 'x');
  EXPECT_THAT(refusal({{"heads", {head_notes("score", {{"labels", {long_label}}})}}}),
              HasSubstr("a label has more than 1024 bytes"));
  AdapterFolder folder;
  for (int i = 0; i < 1000; ++i) folder.sidecar["k" + std::to_string(i)] = 1;
  EXPECT_EQ(folder.read()->warnings.size(), 20u);
}

TEST(Sidecar, HiddenCharactersInNamesAreRefused) {
  for (const char* hidden : {"a\nb", "\x1B", "\xE2\x80\xAE", "\xC2\x85"}) {
    AdapterFolder task;
    task.sidecar = {{"task", hidden}};
    EXPECT_THAT(task.refusal(), HasSubstr("\"task\" has control characters"));
    AdapterFolder head;
    head.add_head(hidden, 2);
    EXPECT_THAT(head.refusal(), HasSubstr("has control characters or bidirectional controls"));
  }
}

TEST(Sidecar, UnknownKeysWarn) {
  AdapterFolder folder;
  folder.add_head("score", 2);
  folder.sidecar = {{"mood", 1}, {"heads", {head_notes("score", {{"colour", 2}})}}};
  EXPECT_THAT(folder.read()->warnings,
              ElementsAre(HasSubstr("\"colour\" is unknown"), HasSubstr("\"mood\" is unknown")));
}

}  // namespace
}  // namespace valora::adapters
