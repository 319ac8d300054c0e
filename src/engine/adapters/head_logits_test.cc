#include "engine/adapters/head_logits.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/adapters/adapter_tensors.h"

namespace valora {
namespace {

using adapters::ProblemType;

serving::LoadedHead head_of(const at::Tensor& bias = {}) {
  return {"score",
          {"a", "b", "c"},
          ProblemType::kSingleLabel,
          false,
          std::make_shared<HeadTensors>(at::tensor({1.f, 0.f, 0.f, 2.f, -1.f, -1.f}).view({3, 2}),
                                        bias)};
}

TEST(HeadLogits, EqualMatrixProductPlusBias) {
  const at::Tensor hidden = at::tensor({3.f, 1.f});
  EXPECT_EQ(*label_logits(head_of(at::tensor({0.f, 2.f, 0.f})), hidden),
            (std::vector<float>{3, 4, -4}));
  EXPECT_EQ(*label_logits(head_of(), hidden), (std::vector<float>{3, 2, -4}));
}

TEST(HeadLogits, ReadsHiddenStatesOfTheModelsDtype) {
  EXPECT_EQ((*label_logits(head_of(), at::tensor({3.f, 1.f}).to(at::kBFloat16)))[0], 3);
}

TEST(HeadLogits, NanIsAnError) {
  EXPECT_EQ(label_logits(head_of(), at::tensor({NAN, 1.f})).error().code, ErrorCode::kInternal);
  EXPECT_EQ(embedding_of(at::tensor({NAN, 1.f})).error().code, ErrorCode::kInternal);
}

TEST(HeadLogits, ProbabilitiesFollowProblemType) {
  const std::vector<float> logits{3, 4, -4};
  EXPECT_NEAR(probabilities_of(logits, ProblemType::kSingleLabel)[1],
              std::exp(4.0) / (std::exp(3.0) + std::exp(4.0) + std::exp(-4.0)), 1e-6);
  EXPECT_NEAR(probabilities_of(logits, ProblemType::kMultiLabel)[0], 1 / (1 + std::exp(-3.0)),
              1e-6);
  EXPECT_EQ(probabilities_of(logits, ProblemType::kRegression), logits);
}

}  // namespace
}  // namespace valora
