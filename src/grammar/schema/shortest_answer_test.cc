#include "grammar/schema/shortest_answer.h"

#include <gmock/gmock.h>

#include "grammar/schema/schema_check.h"
#include "grammar/testing/test_grammars.h"

namespace valora::grammar {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(const GrammarSpec& spec) {
  static GrammarCompiler compiler(byte_vocabulary());
  const auto compiled = compiler.compile(spec);
  return compiled.ok() ? "" : compiled.error().message;
}
std::string endless_reference(const std::string& way_out) {
  return R"({"$defs": {"n": {"anyOf": [{"type": "object", "required": ["n"], "properties":
      {"n": {"$ref": "#/$defs/n"}}})" +
         way_out + R"(]}}, "$ref": "#/$defs/n"})";
}

TEST(ShortestAnswer, IsALowerBoundInBytes) {
  const std::pair<GrammarSpec, int64_t> expected[] = {
      {RegexSpec{"abc|de"}, 2},
      {RegexSpec{"(ab){300,}c?"}, 600},
      {RegexSpec{"[é-ü]{2}[^a]"}, 5},
      {ChoiceSpec{{"one", "three"}}, 3},
      {EbnfSpec{"root ::= \"a\" root \"b\" | [0-9]{3}"}, 3},
      {JsonSchemaSpec{R"({"type": "string", "minLength": 9000})"}, 9002},
      {JsonSchemaSpec{R"({"type": "array", "items": {"type": "string"}, "minItems": 300})"},
       2 + 300 * 2 + 299},
      {JsonSchemaSpec{endless_reference(R"(, {"type": "null"})")}, 4}};
  for (const auto& [spec, bytes] : expected) EXPECT_EQ(start(spec).shortest_answer(), bytes);
}

TEST(ShortestAnswer, EndlessAnswersAreRefused) {
  EXPECT_THAT(refusal_of(EbnfSpec{"root ::= \"a\" b\nb ::= \"x\" b"}), HasSubstr("endless"));
  EXPECT_THAT(refusal_of(JsonSchemaSpec{endless_reference("")}), HasSubstr("endless"));
}

TEST(ShortestAnswer, ClassesWithoutCharactersAreRefused) {
  for (const char* pattern : {"a[^\\s\\S]", "(a|b[^\\d\\D]){2,300}"})
    EXPECT_THAT(refusal_of(RegexSpec{pattern}), HasSubstr("no character matches")) << pattern;
  EXPECT_THAT(refusal_of(JsonSchemaSpec{
                  R"({"type": "array", "items": {"type": "string", "pattern": "^a[^\\s\\S]$"}})"}),
              HasSubstr("no character matches"));
}

// Each token adds the same, however many came before.
TEST(LongRepetition, TakesMemoryInProportionToTheAnswer) {
  for (const GrammarSpec& spec :
       {GrammarSpec(JsonSchemaSpec{R"({"type": "string", "minLength": 9000})"}),
        GrammarSpec(RegexSpec{"\"[^\"]{9000,}\""}),
        GrammarSpec(EbnfSpec{"root ::= \"\\\"\" [a-z]{9000,} \"\\\"\""})}) {
    GrammarMatcher matcher = start(spec);
    ASSERT_TRUE(matcher.accept('"').ok());
    const auto follow = [&](int characters) {
      for (int i = 0; i < characters; ++i) {
        const Status taken = matcher.accept('a' + i % 26);
        ASSERT_TRUE(taken.ok()) << i << ": " << taken.error().message;
      }
    };
    follow(4500);
    EXPECT_LT(matcher.bytes(), 32 << 20);
    follow(4499);
    EXPECT_FALSE(matcher.accept('"').ok()) << "it is one character short";
    follow(1);
    EXPECT_TRUE(allows(*matcher.mask(), 'a')) << "more may follow";
    EXPECT_TRUE(matcher.accept('"').ok());
    EXPECT_TRUE(matcher.must_end());
  }
}

TEST(LargestMinimum, IsNamedWithItsPlace) {
  EXPECT_EQ(largest_minimum("{}"), "");
  EXPECT_EQ(largest_minimum("{"), "");
  EXPECT_EQ(largest_minimum(R"({"items": {"minLength": 3, "type": "string"}, "minItems": 2})"),
            "\"minLength\" at #/items");
  EXPECT_EQ(largest_minimum(R"({"properties": {"minItems": {"minProperties": 7}}})"),
            "\"minProperties\" at #/properties/minItems");
}

}  // namespace
}  // namespace valora::grammar
