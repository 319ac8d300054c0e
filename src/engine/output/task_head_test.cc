#include "engine/output/task_head.h"

#include <gtest/gtest.h>

#include <cmath>

namespace valora {
namespace {

LoadedHead head_of(adapters::ProblemType type, const at::Tensor& bias = {}) {
  return {"score",
          {"a", "b", "c"},
          type,
          false,
          at::tensor({1.f, 0.f, 0.f, 2.f, -1.f, -1.f}).view({3, 2}),
          bias};
}

Result<Classification> classify(const LoadedHead& head, const at::Tensor& hidden) {
  VALORA_TRY(logits, label_logits(head, hidden));
  return classification_of(head, std::move(logits));
}

TEST(TaskHead, LogitsProbabilitiesAndText) {
  const at::Tensor hidden = at::tensor({3.f, 1.f});
  const LoadedHead single =
      head_of(adapters::ProblemType::kSingleLabel, at::tensor({0.f, 2.f, 0.f}));
  const auto result = classify(single, hidden);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->logits, (std::vector<float>{3, 4, -4}));
  EXPECT_EQ(result->best, 1);
  EXPECT_NEAR(result->probs[1], std::exp(4.0) / (std::exp(3.0) + std::exp(4.0) + std::exp(-4.0)),
              1e-6);
  EXPECT_EQ(label_text(single, *result), "b");

  const LoadedHead multi = head_of(adapters::ProblemType::kMultiLabel);
  const auto several = classify(multi, hidden);
  EXPECT_NEAR(several->probs[0], 1 / (1 + std::exp(-3.0)), 1e-6);
  EXPECT_EQ(label_text(multi, *several), "a, b");

  const LoadedHead value = head_of(adapters::ProblemType::kRegression);
  EXPECT_EQ(classify(value, hidden)->probs, (std::vector<float>{3, 2, -4}));
  EXPECT_EQ(label_text(value, *classify(value, hidden)), "3, 2, -4");
}

TEST(TaskHead, ReadsHiddenStatesOfTheModelsDtype) {
  EXPECT_EQ(classify(head_of(adapters::ProblemType::kSingleLabel),
                     at::tensor({3.f, 1.f}).to(at::kBFloat16))
                ->logits[0],
            3);
}

TEST(TaskHead, NotANumberIsAnError) {
  EXPECT_EQ(
      classify(head_of(adapters::ProblemType::kSingleLabel), at::tensor({NAN, 1.f})).error().code,
      ErrorCode::kInternal);
}

AppliedAdapter adapter_with(const std::vector<std::string>& heads) {
  auto adapter = std::make_shared<LoadedAdapter>();
  for (const std::string& name : heads) {
    adapter->heads.push_back(head_of(adapters::ProblemType::kSingleLabel));
    adapter->heads.back().name = name;
  }
  return {adapter, 1};
}

TEST(ChooseHead, ByTaskAndName) {
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

TEST(ChooseHead, ANameMayStandForOne) {
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
  chat.head = classify.head = "x";  // the request overrides the name's head
  EXPECT_EQ((*chosen(chat))->name, "x");
  EXPECT_EQ((*chosen(classify))->name, "x");
  adapter.head = "y";
  chat.head = "";
  EXPECT_EQ(*chosen(chat), nullptr);
}

}  // namespace
}  // namespace valora
