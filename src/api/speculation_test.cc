#include "api/options.h"

#include <gtest/gtest.h>

namespace valora {
namespace {

TEST(Speculation, AcceptsVllmsNgramSettings) {
  const auto options = parse_speculation(
      R"({"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 6,
          "prompt_lookup_min": 2})");
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->tokens, 3);
  EXPECT_EQ(options->longest, 6);
  EXPECT_EQ(options->least, 2);
  EXPECT_EQ(options->ignored, "");
  const auto one = parse_speculation(R"({"num_speculative_tokens": 1, "prompt_lookup_max": 3})");
  ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_EQ(one->longest, 3);
  EXPECT_EQ(one->least, 3);
}

TEST(Speculation, UnsupportedMethodIsNamedAndDisablesSpeculation) {
  EXPECT_EQ(parse_speculation(R"({"method": "eagle3", "model": "x"})")->ignored, "eagle3");
  EXPECT_EQ(parse_speculation(R"({"model": "x", "num_speculative_tokens": 4})")->ignored,
            "draft_model");
  EXPECT_EQ(parse_speculation(R"({"method": "eagle3"})")->tokens, 0);
}

TEST(Speculation, InvalidValueIsRefusedByKey) {
  const auto says = [](const char* text, const std::string& part) {
    const auto options = parse_speculation(text);
    ASSERT_FALSE(options.ok()) << text;
    EXPECT_EQ(options.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_NE(options.error().message.find(part), std::string::npos) << options.error().message;
  };
  says("[]", "object");
  says("{", "--speculative-config");
  says(R"({"method": 1})", "\"method\"");
  says(R"({"method": "ngram"})", "\"num_speculative_tokens\" is missing");
  says(R"({"method": "ngram", "num_speculative_tokens": 0})", "from 1 to 32");
  says(R"({"method": "ngram", "num_speculative_tokens": 4.5})", "num_speculative_tokens");
  says(R"({"method": "ngram", "num_speculative_tokens": 4, "n": 2})", "\"n\"");
  says(R"({"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 5,
           "prompt_lookup_max": 2})",
       "above");
}

}  // namespace
}  // namespace valora
