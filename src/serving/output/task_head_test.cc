#include "serving/output/task_head.h"

#include <gtest/gtest.h>

namespace valora::serving {
namespace {

LoadedHead head_of(adapters::ProblemType type) {
  return {"score", {"a", "b", "c"}, type, false, nullptr};
}

TEST(TaskHead, FormatsAnswerAsTextAndJson) {
  const LoadedHead single = head_of(adapters::ProblemType::kSingleLabel);
  const Classification one = classification_of(single, {3, 4, -4}, {0.25f, 0.75f, 0});
  EXPECT_EQ(one.head, "score");
  EXPECT_EQ(one.labels, single.labels);
  EXPECT_EQ(one.logits, (std::vector<float>{3, 4, -4}));
  EXPECT_EQ(one.best, 1);
  EXPECT_EQ(label_text(single, one), "b");
  EXPECT_EQ(label_answer(single, one), R"({"label": "b"})");

  const LoadedHead multi = head_of(adapters::ProblemType::kMultiLabel);
  const Classification several = classification_of(multi, {3, 0, -4}, {0.9f, 0.5f, 0.1f});
  EXPECT_EQ(label_text(multi, several), "a, b");
  EXPECT_EQ(label_answer(multi, several), R"({"labels": ["a", "b"]})");

  const LoadedHead value = head_of(adapters::ProblemType::kRegression);
  EXPECT_EQ(label_text(value, classification_of(value, {3, 2, -4}, {3, 2, -4})), "3, 2, -4");
}

AppliedAdapter adapter_with(const std::vector<std::string>& heads) {
  auto adapter = std::make_shared<LoadedAdapter>();
  for (const std::string& name : heads) {
    adapter->heads.push_back(head_of(adapters::ProblemType::kSingleLabel));
    adapter->heads.back().name = name;
  }
  return {adapter, 1};
}

TEST(ChooseHead, TaskAndNameSelectHead) {
  const std::vector<AppliedAdapter> none{adapter_with({})}, one{adapter_with({"x"})},
      two{adapter_with({"x", "y"})}, twice{adapter_with({"x"}), adapter_with({"x"})};
  GenerateRequest chat, classify;
  classify.task = Task::kClassify;
  EXPECT_EQ(*choose_head(chat, none), nullptr);
  EXPECT_EQ((*choose_head(chat, one))->name, "x");
  EXPECT_EQ((*choose_head(classify, one))->name, "x");
  EXPECT_FALSE(choose_head(classify, none).ok());
  EXPECT_NE(choose_head(classify, two).error().message.find("x, y"), std::string::npos);
  EXPECT_EQ(*choose_head(chat, two), nullptr) << "text is always an answer";
  for (const char* language_model : {"", "lm"}) {
    chat.head = language_model;
    EXPECT_EQ(*choose_head(chat, one), nullptr);
    EXPECT_EQ(*choose_head(chat, two), nullptr);
    EXPECT_EQ(*choose_head(chat, none), nullptr);
  }
  const std::vector<AppliedAdapter> named{adapter_with({"lm"})};
  EXPECT_EQ((*choose_head(chat, named))->name, "lm");
  classify.head = "lm";
  EXPECT_FALSE(choose_head(classify, two).ok());
  classify.head = "y";
  EXPECT_EQ((*choose_head(classify, two))->name, "y");
  classify.head = "z";
  EXPECT_NE(choose_head(classify, two).error().message.find("no head \"z\""), std::string::npos);
  classify.head = "x";
  EXPECT_NE(choose_head(classify, twice).error().message.find("several heads"), std::string::npos);
}

TEST(ChooseHead, AdapterNameMayHaveDefaultHead) {
  AppliedAdapter adapter = adapter_with({"x", "y"});
  GenerateRequest chat, classify;
  classify.task = Task::kClassify;
  const auto chosen = [&](const GenerateRequest& request) {
    return choose_head(request, {&adapter, 1});
  };
  adapter.head = "y";
  EXPECT_EQ((*chosen(chat))->name, "y");
  EXPECT_EQ((*chosen(classify))->name, "y");
  adapter.head = "";
  EXPECT_EQ(*chosen(chat), nullptr);
  EXPECT_FALSE(chosen(classify).ok());
  chat.head = classify.head = "x";  // the request overrides the default head of the name
  EXPECT_EQ((*chosen(chat))->name, "x");
  EXPECT_EQ((*chosen(classify))->name, "x");
  adapter.head = "y";
  chat.head = "";
  EXPECT_EQ(*chosen(chat), nullptr);
}

}  // namespace
}  // namespace valora::serving
