#include "adapters/targets/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::adapters {
namespace {

using ::testing::HasSubstr;

bool full(const std::string& pattern, const std::string& text) {
  RegexBudget budget;
  return *Regex::compile(pattern, "p")->full_match(text, budget);
}

// Results of re.fullmatch in Python 3.11.
TEST(RegexTest, MatchesLikePython) {
  EXPECT_TRUE(full("a|ab", "ab"));
  EXPECT_FALSE(full("a", "ab"));
  EXPECT_TRUE(full(R"((?P<k>[qk])_(?P=k))", "q_q"));
  EXPECT_TRUE(full("(?i)LAYERS", "layers"));
  EXPECT_TRUE(full(R"(\w+)", "é1_"));
  EXPECT_FALSE(full(".", "\n"));
  EXPECT_TRUE(full(".", "\r"));
  EXPECT_TRUE(full("^a$", "a"));
  EXPECT_TRUE(full("a{,2}", ""));
  EXPECT_TRUE(full("a{,2}", "aa"));
  EXPECT_FALSE(full("a{,2}", "a{,2}"));
  EXPECT_TRUE(full("a{,}", "aaaa"));
  EXPECT_TRUE(full("a{x}", "a{x}"));
  EXPECT_TRUE(full(R"(a\{,2})", "a{,2}"));
  EXPECT_TRUE(full("[{,2}]+", "{,2}"));
  EXPECT_TRUE(full("[]{,2}]+", "]{"));
  EXPECT_FALSE(full("[^]a]", "]"));
  EXPECT_TRUE(full("(?:a(?!b)|c)d", "ad"));
}

TEST(RegexTest, ReturnsGroups) {
  RegexBudget budget;
  const auto groups = Regex::compile(R"(.*\.(\d+)\.(x)?)", "p")->match("m.layers.12.q", budget);
  ASSERT_TRUE(groups.ok() && groups->has_value());
  EXPECT_EQ((**groups)[0], "m.layers.12.");
  EXPECT_EQ((**groups)[1], "12");
  EXPECT_FALSE(Regex::compile("layers", "p")->match("m.layers", budget)->has_value());
}

TEST(RegexTest, RefusesInvalidAndNonPythonPatterns) {
  for (const char* pattern :
       {"(", "*", "[", "\\", "(?P<a>", "a{2,1}", "[[:alpha:]]", "((((a{60}){60}){60}){60})"}) {
    const auto regex = Regex::compile(pattern, "exclude_modules");
    ASSERT_FALSE(regex.ok()) << pattern;
    EXPECT_EQ(regex.error().code, ErrorCode::kUnprocessable);
    EXPECT_EQ(regex.error().param, "exclude_modules");
  }
}

TEST(RegexTest, CatastrophicPatternsHitBudget) {
  const auto regex = Regex::compile("(x+x+)+[yz]", "target_modules");
  ASSERT_TRUE(regex.ok());
  RegexBudget budget;
  const auto matched = regex->full_match(std::string(200, 'x'), budget);
  ASSERT_FALSE(matched.ok());
  EXPECT_THAT(matched.error().message,
              HasSubstr("target_modules: matching its regular expression"));
  EXPECT_EQ(budget.long_matches, RegexBudget{}.long_matches - 11);
  // Heavy backtracking draws on the budget, light backtracking does not.
  EXPECT_FALSE(*regex->full_match(std::string(11, 'x'), budget));
  EXPECT_EQ(budget.long_matches, RegexBudget{}.long_matches - 12);
  EXPECT_FALSE(*regex->full_match("xxx", budget));
  EXPECT_EQ(budget.long_matches, RegexBudget{}.long_matches - 12);
  // Without budget, only the first limit applies.
  budget.long_matches = 0;
  EXPECT_FALSE(regex->full_match(std::string(200, 'x'), budget).ok());
  EXPECT_TRUE(*regex->full_match("xxxy", budget));
}

}  // namespace
}  // namespace valora::adapters
