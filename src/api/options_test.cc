#include "api/options.h"

#include <gtest/gtest.h>

namespace valora {
namespace {

template <typename T>
void expect_names(Result<T> (*parse)(const std::string&), const std::vector<std::string>& names,
                  const std::string& param) {
  for (const std::string& name : names) {
    const auto value = parse(name);
    ASSERT_TRUE(value.ok()) << name;
    EXPECT_EQ(name_of(*value), name);
  }
  const auto unknown = parse("elsewhere");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(unknown.error().param, param);
  for (const std::string& part : names)
    EXPECT_NE(unknown.error().message.find(part), std::string::npos) << unknown.error().message;
  EXPECT_NE(unknown.error().message.find("\"elsewhere\""), std::string::npos);
}

TEST(Options, RoundTripThroughTheirNames) {
  expect_names(parse_dtype, {"auto", "float32", "bfloat16", "float16"}, "dtype");
  expect_names(parse_device, {"cpu", "cuda"}, "device");
  expect_names(parse_kernels, {"native", "reference"}, "kernels");
  expect_names(parse_merge_place, {"shadow", "inplace"}, "merge");
  expect_names(parse_json_spacing, {"bounded", "compact", "free"}, "json_whitespace");
}

TEST(Options, DtypeAcceptsTorchShortNames) {
  EXPECT_EQ(*parse_dtype("float"), ComputeDtype::kFloat32);
  EXPECT_EQ(*parse_dtype("half"), ComputeDtype::kFloat16);
}

TEST(Options, UnknownNameErrorListsKnownNames) {
  EXPECT_EQ(parse_dtype("int8").error().message,
            "dtype \"int8\" is unknown; use auto, float32, bfloat16, float16, half or float");
  EXPECT_EQ(parse_device("tpu").error().message, "device \"tpu\" is unknown; use cpu or cuda");
}

}  // namespace
}  // namespace valora
