#include "grammar/matcher.h"

#include <gtest/gtest.h>

#include <random>

#include "base/json/json.h"
#include "grammar/testing/test_grammars.h"

namespace valora::grammar {
namespace {

std::vector<int32_t> allowed(GrammarMatcher& matcher) {
  std::vector<int32_t> ids;
  const auto mask = matcher.mask();
  EXPECT_TRUE(mask.ok());
  for (int32_t id = -1; mask.ok() && id <= kTestVocabulary + 64; ++id)
    if (allows(*mask, id)) ids.push_back(id);
  return ids;
}

TEST(GrammarMatcher, AllowsEveryTokenThatContinuesAnAnswer) {
  GrammarMatcher matcher = start(ChoiceSpec{{"ab", "true", "x"}});
  EXPECT_EQ(allowed(matcher), (std::vector<int32_t>{'a', 't', 'x', 258, 259}));
  EXPECT_FALSE(matcher.may_end());
  ASSERT_TRUE(matcher.accept('a').ok());
  EXPECT_EQ(allowed(matcher), std::vector<int32_t>{'b'});
  ASSERT_TRUE(matcher.accept('b').ok());
  EXPECT_TRUE(matcher.may_end());
  EXPECT_TRUE(matcher.must_end());
  EXPECT_TRUE(allowed(matcher).empty());
}

TEST(GrammarMatcher, MultiByteTokenMustMatchCompletely) {
  GrammarMatcher matcher = start(ChoiceSpec{{"true", "tree"}});
  ASSERT_TRUE(matcher.accept(258).ok());
  EXPECT_TRUE(matcher.must_end());
}

TEST(GrammarMatcher, MayEndEvenIfMoreIsAllowed) {
  GrammarMatcher matcher = start(RegexSpec{"a+"});
  ASSERT_TRUE(matcher.accept('a').ok());
  EXPECT_TRUE(matcher.may_end());
  EXPECT_FALSE(matcher.must_end());
  EXPECT_EQ(allowed(matcher), std::vector<int32_t>{'a'});
}

TEST(GrammarMatcher, CachesTheMaskAfterTheFirstCall) {
  GrammarMatcher matcher = start(RegexSpec{"ab+"});
  ASSERT_TRUE(matcher.known_mask()) << "of the start";
  ASSERT_TRUE(matcher.accept('a').ok());
  EXPECT_FALSE(matcher.known_mask());
  const auto mask = matcher.mask();
  ASSERT_TRUE(mask.ok());
  ASSERT_TRUE(matcher.known_mask());
  EXPECT_EQ(matcher.known_mask()->data(), mask->data());
  ASSERT_TRUE(matcher.accept('b').ok());
  EXPECT_TRUE(matcher.known_mask()) << "where the answer may end it is filled with the token";
}

TEST(GrammarMatcher, RefusedTokenDoesNotChangeTheState) {
  GrammarMatcher matcher = start(ChoiceSpec{{"ab"}});
  for (const int32_t token : {int32_t{'b'}, kSpecialToken, kTestVocabulary, 100000, -1})
    EXPECT_FALSE(matcher.accept(token).ok()) << token;
  EXPECT_TRUE(matcher.accept('a').ok());
}

TEST(GrammarMatcher, NeverAllowsSpecialTokensOrPadding) {
  GrammarMatcher matcher = start(RegexSpec{"[\\s\\S]+"});
  const auto ids = allowed(matcher);
  for (const int32_t id : ids) EXPECT_LT(id, kSpecialToken);
  EXPECT_GT(ids.size(), 150);
}

TEST(GrammarMatcher, CopiesAreIndependent) {
  GrammarMatcher first = start(ChoiceSpec{{"ab", "ac"}});
  ASSERT_TRUE(first.accept('a').ok());
  GrammarMatcher second = first;
  ASSERT_TRUE(first.accept('b').ok());
  EXPECT_EQ(allowed(second), (std::vector<int32_t>{'b', 'c'}));
  ASSERT_TRUE(second.accept('c').ok());
  EXPECT_TRUE(first.must_end());
  EXPECT_TRUE(second.must_end());
  second = start(ChoiceSpec{{"x"}});
  EXPECT_EQ(allowed(second), std::vector<int32_t>{'x'});
}

TEST(GrammarMatcher, NeverAllowsSurrogates) {
  GrammarMatcher matcher = start(RegexSpec{"[^a]+"});
  ASSERT_TRUE(matcher.accept(0xED).ok());
  EXPECT_TRUE(allows(*matcher.mask(), 0x9F));
  EXPECT_FALSE(allows(*matcher.mask(), 0xA0));
  EXPECT_FALSE(matcher.accept(0xA0).ok());
  ASSERT_TRUE(matcher.accept(0x80).ok());
  EXPECT_TRUE(allows(*matcher.mask(), 0xA0));
}

TEST(GrammarMatcher, DeadEndIsAnError) {
  Vocabulary letters;
  letters.bytes = {"a", "b"};
  letters.size = 2;
  GrammarCompiler compiler(letters);
  const auto compiled = compiler.compile(RegexSpec{"ab1"});
  ASSERT_TRUE(compiled.ok());
  GrammarMatcher matcher = *GrammarMatcher::start(*compiled);
  ASSERT_TRUE(matcher.accept(0).ok());
  ASSERT_TRUE(matcher.accept(1).ok());
  for (int i = 0; i < 2; ++i) {
    const auto stuck = matcher.mask();
    ASSERT_FALSE(stuck.ok());
    EXPECT_EQ(stuck.error().code, ErrorCode::kUnprocessable);
  }
  EXPECT_EQ(matcher.accept(1).error().code, ErrorCode::kUnprocessable);
}

TEST(GrammarMatcher, MeasuresItsTime) {
  GrammarMatcher matcher = start(RegexSpec{"[a-z]+"});
  const double begun = matcher.cpu_seconds();
  EXPECT_GT(begun, 0);
  const GrammarMatcher copy = matcher;
  ASSERT_TRUE(matcher.accept('a').ok());
  EXPECT_GT(matcher.cpu_seconds(), begun);
  EXPECT_DOUBLE_EQ(copy.cpu_seconds(), begun);
}

// The number of ways to parse the text grows with every character.
TEST(GrammarMatcher, AmbiguousRecursionEndsWithAnError) {
  GrammarMatcher matcher = start(EbnfSpec{"root ::= s\ns ::= s s s | s s | [a-z ]"});
  Status taken;
  for (int i = 0; taken.ok() && i < 5000; ++i) taken = matcher.accept('a' + i % 26);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(taken.error().message.find("too complex"), std::string::npos) << taken.error().message;
}

// Generates an answer of random tokens.
std::string walk(GrammarMatcher matcher, std::mt19937& random) {
  std::string text;
  for (int steps = 0; !matcher.must_end() && !(matcher.may_end() && random() % 4 == 0); ++steps) {
    const auto ids = allowed(matcher);
    if (ids.empty() || steps == 5000) return "unfinished: " + text;
    const int32_t id = ids[random() % ids.size()];
    text += byte_vocabulary().bytes[id];
    if (const Status taken = matcher.accept(id); !taken.ok()) return taken.error().message + text;
  }
  return text;
}

TEST(GrammarMatcher, RandomWalksUnderASchemaYieldJson) {
  const JsonSchemaSpec spec{R"({"type": "object", "required": ["kind", "box", "note"],
    "properties": {"kind": {"enum": ["cat", "dog", 3, null]},
                   "box": {"type": "array", "items": {"type": "integer", "minimum": 0,
                           "maximum": 999}, "minItems": 4, "maxItems": 4},
                   "note": {"type": "string", "maxLength": 6}}})"};
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    const std::string text = walk(start(spec), random);
    const auto json = parse_json(text, "the walk");
    ASSERT_TRUE(json.ok()) << text;
    EXPECT_EQ((*json)["box"].size(), 4) << text;
  }
}

TEST(GrammarMatcher, RandomWalksUnderFormatsYieldJsonStrings) {
  std::mt19937 random(8);
  for (const std::string format :
       {"email", "date", "time", "date-time", "duration", "ipv4", "ipv6", "hostname", "uuid", "uri",
        "uri-reference", "uri-template", "unknown"})
    for (int i = 0; i < 20; ++i) {
      const std::string text =
          walk(start(JsonSchemaSpec{Json{{"type", "string"}, {"format", format}}.dump()}), random);
      EXPECT_TRUE(parse_json(text, "the walk").ok()) << format << ": " << text;
    }
}

}  // namespace
}  // namespace valora::grammar
