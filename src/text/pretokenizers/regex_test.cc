#include "text/pretokenizers/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/pretokenizers/regex_syntax.h"

namespace valora::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
  const auto translated = translate_regex(pattern);
  if (!translated.ok()) return {translated.error().message};
  const auto regex = Regex::compile(*translated);
  if (!regex.ok()) return {regex.error().message};
  std::vector<std::string> found;
  for (const Span& span : regex->find_all(text))
    found.push_back(text.substr(span.begin, span.end - span.begin));
  return found;
}

TEST(Regex, MatchesPretokenizerPatterns) {
  EXPECT_THAT(matches("(?i:'s|'ll)| ?\\p{L}+", "It's WE'LL"),
              ElementsAre("It", "'s", " WE", "'LL"));
  EXPECT_THAT(matches("\\s+(?!\\S)|\\s+", "a   b\t"), ElementsAre("  ", " ", "\t"));
  EXPECT_THAT(matches("[^\\r\\n\\p{L}]+", "ab1-2\nc"), ElementsAre("1-2"));
  EXPECT_THAT(matches("\\p{N}{1,3}", "12345"), ElementsAre("123", "45"));
  EXPECT_THAT(matches("[a\\-\\]x-z]+", "a-]b xyz"), ElementsAre("a-]", "xyz"));
  EXPECT_THAT(matches("\\x41|\\x{1F600}|\\u5b57|\\.", "A😀字.."),
              ElementsAre("A", "😀", "字", ".", "."));
  EXPECT_THAT(matches("(?<=a)b|(?>c+)c", "ab cccb"), ElementsAre("b"));
  EXPECT_THAT(matches("[^\\S\\n]+", " \n\t"), ElementsAre(" ", "\t"));
}

TEST(Regex, EmptyMatchAtEndOfMatchIsSkipped) {
  EXPECT_THAT(matches("a*", "baac"), ElementsAre("", "aa", ""));
}

TEST(Regex, FollowsUnicodeNotPcre) {
  EXPECT_THAT(matches("\\s", "\u180e"), IsEmpty());
  EXPECT_THAT(matches("\\s", "\u0085"), ElementsAre("\u0085"));
  EXPECT_THAT(matches("\\p{L}", "\U00031350"), ElementsAre("\U00031350"));
  EXPECT_THAT(matches("\\P{L}", "\U00031350"), IsEmpty());
  EXPECT_THAT(matches("\\d", "\U0001CCF0x"), ElementsAre("\U0001CCF0"));
}

TEST(Regex, LiteralsMatchLiterally) {
  const auto regex = Regex::compile(literal_regex(".*字"));
  ASSERT_TRUE(regex.ok());
  EXPECT_EQ(regex->find_all("a字.*字").size(), 1);
}

TEST(Regex, RunawayBacktrackingIsStopped) {
  EXPECT_THAT(matches("(?:(?:a|a)*)*b", std::string(64, 'a')), IsEmpty());
}

TEST(Regex, DeepTextDoesNotExhaustTheStack) {
  const std::string text(100'000, 'a');
  EXPECT_THAT(matches("(?:a|b)+", text), ElementsAre(text));
  std::string over_the_heap_limit;
  over_the_heap_limit.resize(20'000'000, 'a');
  EXPECT_THAT(matches("(?:a|b)+", over_the_heap_limit), IsEmpty());
}

struct Refused {
  const char* pattern;
  const char* reason;
};

class RegexRefusal : public ::testing::TestWithParam<Refused> {};

TEST_P(RegexRefusal, NamesTheConstruct) {
  const auto translated = translate_regex(GetParam().pattern);
  ASSERT_FALSE(translated.ok());
  EXPECT_THAT(translated.error().message, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Syntax, RegexRefusal,
    ::testing::Values(
        Refused{"^a", "anchor \"^\""}, Refused{"a$", "anchor \"$\""}, Refused{"\\w+", "\"\\w\""},
        Refused{"\\bx", "\"\\b\""}, Refused{"\\h", "\"\\h\""}, Refused{"(a)\\1", "\"\\1\""},
        Refused{"(?<n>a)", "group \"(?<n\""}, Refused{"(?i)a", "group \"(?i)\""},
        Refused{"\\p{Han}", "property \"Han\""}, Refused{"\\p{^L}", "property"},
        Refused{"\\pL", "\"\\p\""}, Refused{"[a[b]]", "nested"}, Refused{"[a&&b]", "nested"},
        Refused{"[[:alpha:]]", "nested"}, Refused{"[]a]", "begins with"},
        Refused{"[a", "not closed"}, Refused{"[^\\P{L}]", "inside a character class"},
        Refused{"[z-a]", "range"}, Refused{"[a-\\s]", "range"}, Refused{"(a", "not closed"},
        Refused{"a)", "without a group"}, Refused{"a{,3}", "\"{\""}, Refused{"a{2}+", "quantifier"},
        Refused{"a{2}?", "quantifier"}, Refused{"a{x", "\"{\""}, Refused{"a\\", "ends in"},
        Refused{"(?i:é)", "ASCII only"}, Refused{"(?i:\\s)", "(?i:"}, Refused{"(?i:ss)", "\"ss\""},
        Refused{"\\xff", "non-ASCII"}, Refused{"\\x{110000}", "not a character"},
        Refused{"\\ud800", "not a character"}, Refused{"\\x{}", "malformed"},
        Refused{"\\uzzzz", "malformed"}));

TEST(Regex, ReportsPcreErrors) {
  const auto translated = translate_regex("(?<=a+)b");
  ASSERT_TRUE(translated.ok());
  EXPECT_FALSE(Regex::compile(*translated).ok());
  EXPECT_FALSE(Regex::compile(std::string(1 << 20, 'a')).ok());
}

}  // namespace
}  // namespace valora::text
