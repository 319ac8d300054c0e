#include "server/openai/utf8.h"

#include <gtest/gtest.h>

namespace valora::server {
namespace {

const std::string kReplacement = "\xEF\xBF\xBD";

TEST(WithReplacements, KeepsValidText) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xEF\xBF\xBD";
  EXPECT_EQ(with_replacements(text), text);
}

// The expected texts come from CPython's bytes.decode("utf-8", "replace").
TEST(WithReplacements, ReplacesEachIllFormedRunOnce) {
  EXPECT_EQ(with_replacements("\xE2\x82"), kReplacement);
  EXPECT_EQ(with_replacements("a\x80"
                              "b"),
            "a" + kReplacement + "b");
  EXPECT_EQ(with_replacements("\xC0\xAF"), kReplacement + kReplacement);
  EXPECT_EQ(with_replacements("\xED\xA0\x80"), kReplacement + kReplacement + kReplacement);
  EXPECT_EQ(with_replacements("\xF0\x9F\x98z"), kReplacement + "z");
  EXPECT_EQ(with_replacements("\xF4\x90\x80\x80"),
            kReplacement + kReplacement + kReplacement + kReplacement);
}

TEST(CountCharacters, CountsCodePoints) {
  EXPECT_EQ(count_characters(""), 0u);
  EXPECT_EQ(count_characters("a\xC3\xA9\xF0\x9F\x98\x80"), 3u);
}

}  // namespace
}  // namespace valora::server
