#include "serving/output/not_finite.h"

#include <gtest/gtest.h>

#include <vector>

namespace valora::serving {
namespace {

AppliedAdapter use_of(const char* name) {
  auto adapter = std::make_shared<LoadedAdapter>();
  adapter->name = name;
  return {std::move(adapter)};
}

TEST(NotFinite, IsTheFaultOfTheAdaptersIfThereAreAny) {
  const Error logits = not_finite("the model's logits");
  const Error base = error_for_client(logits, {});
  EXPECT_EQ(base.code, ErrorCode::kInternal);
  EXPECT_EQ(base.message, "the model's logits are NaN or infinite");
  EXPECT_EQ(base.param, "");
  const std::vector<AppliedAdapter> one{use_of("cats")}, two{use_of("cats"), use_of("dogs")};
  const Error adapted = error_for_client(logits, one);
  EXPECT_EQ(adapted.code, ErrorCode::kUnprocessable);
  EXPECT_EQ(adapted.message,
            "the model's logits are NaN or infinite with the adapter `cats`, whose values are too "
            "large to be computed with");
  EXPECT_NE(error_for_client(logits, two).message.find("the adapters `cats`, `dogs`"),
            std::string::npos);
}

TEST(NotFinite, OtherErrorsStayAsTheyAre) {
  const std::vector<AppliedAdapter> one{use_of("cats")};
  const Error told = error_for_client(internal("a bug"), one);
  EXPECT_EQ(told.code, ErrorCode::kInternal);
  EXPECT_EQ(told.message, "a bug");
}

}  // namespace
}  // namespace valora::serving
