#include "cli/options/json_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::cli {
namespace {

TEST(StructuredOutputs, DisablingAnyWhitespaceSelectsCompact) {
  for (const char* text :
       {"", "{}", R"({"disable_any_whitespace": false})",
        R"({"backend": "guidance", "disable_fallback": true, "reasoning_parser": ""})",
        R"({"enable_in_reasoning": false, "disable_additional_properties": false})"}) {
    const auto read = read_structured_outputs(text);
    ASSERT_TRUE(read.ok()) << text << read.error().message;
    EXPECT_EQ(*read, std::nullopt) << text;
  }
  EXPECT_EQ(*read_structured_outputs(R"({"backend": "auto", "disable_any_whitespace": true})"),
            JsonSpacing::kCompact);
}

TEST(StructuredOutputs, UnsupportedSettingIsRefusedByName) {
  for (const auto& [text, named] :
       {std::pair{"[1]", "object"},
        {"{", "--structured-outputs-config"},
        {R"({"backend": "own"})", "backend"},
        {R"({"disable_any_whitespace": "true"})", "disable_any_whitespace"},
        {R"({"disable_additional_properties": true})", "disable_additional_properties"},
        {R"({"reasoning_parser": "deepseek_r1"})", "reasoning_parser"},
        {R"({"enable_in_reasoning": true})", "enable_in_reasoning"},
        {R"({"whitespace_pattern": " ?"})", "whitespace_pattern"}}) {
    const auto read = read_structured_outputs(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(read.error().message, ::testing::HasSubstr(named)) << text;
  }
}

}  // namespace
}  // namespace valora::cli
