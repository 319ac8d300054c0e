#include "grammar/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grammar/schema/schema_check.h"

namespace valora::grammar {
namespace {

using ::testing::HasSubstr;

std::string reason(const GrammarSpec& spec) {
  const Status status = check(spec);
  if (status.ok()) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  return status.error().message;
}
std::string schema(const std::string& text) { return reason(JsonSchemaSpec{text}); }

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(GrammarSpec, AcceptsCommonSchemas) {
  for (const char* text :
       {R"({})", "true", R"({"type": "object"})", R"({"type": ["string", "null"]})",
        R"({"type": "string", "enum": ["a", "b"], "title": "T", "default": "a"})",
        R"({"const": 3, "type": "integer"})",
        R"({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null})",
        R"({"$defs": {"A": {"type": "integer"}}, "type": "object", "required": ["a"],
               "properties": {"a": {"$ref": "#/$defs/A", "description": "d"}},
               "additionalProperties": false})",
        R"({"type": "array", "prefixItems": [{"type": "null"}], "items": {"type": "null"}})",
        R"({"type": "object", "propertyNames": {"pattern": "^a$"}})",
        R"({"type": "array", "items": {}, "uniqueItems": false})"})
    EXPECT_EQ(schema(text), "") << text;
}

TEST(GrammarSpec, ErrorsNameThePathInTheSchema) {
  EXPECT_THAT(schema(R"({"properties": {"a": {"items": {"not": {}}}}})"),
              HasSubstr("#/properties/a/items has \"not\""));
  EXPECT_THAT(schema(R"({"anyOf": [{}, {"type": "array", "uniqueItems": true}]})"),
              HasSubstr("#/anyOf/1 has \"uniqueItems\""));
  EXPECT_THAT(schema(R"({"type": "array", "maxItems": 10001})"), HasSubstr("#/maxItems"));
  EXPECT_THAT(schema(R"({"type": "string", "minLength": -1})"), HasSubstr("#/minLength"));
  EXPECT_THAT(schema(R"({"type": "integer", "minimum": "3"})"), HasSubstr("#/minimum"));
  EXPECT_THAT(schema(R"({"type": "string", "pattern": "a{99999}"})"), HasSubstr("#/pattern"));
  EXPECT_THAT(schema(R"({"$ref": "http://x/y"})"), HasSubstr("#/$ref"));
  EXPECT_THAT(schema(R"({"type": "array", "items": 3})"), HasSubstr("#/items"));
  EXPECT_THAT(schema(R"({"enum": []})"), HasSubstr("#/enum"));
  EXPECT_THAT(schema(R"({"type": "string", "format": "json-pointer"})"), HasSubstr("\"format\""));
}

TEST(GrammarSpec, RefusesKeywordsThatWouldHaveNoEffect) {
  EXPECT_THAT(schema(R"({"type": "object", "anyOf": [{}]})"), HasSubstr("together with \"anyOf\""));
  EXPECT_THAT(schema(R"({"$ref": "#", "minimum": 3})"), HasSubstr("together with \"$ref\""));
  EXPECT_THAT(schema(R"({"minLength": 3})"), HasSubstr("no \"type\""));
  EXPECT_THAT(schema(R"({"type": "string", "enum": ["a", 3]})"), HasSubstr("excludes"));
  EXPECT_THAT(schema(R"({"type": "object", "required": ["a"]})"), HasSubstr("requires \"a\""));
}

TEST(GrammarSpec, LimitsSchemas) {
  EXPECT_NE(schema(repeated(R"({"items": )", 10000) + "{}" + repeated("}", 10000)), "");
  EXPECT_NE(schema("{\"title\": \"" + std::string(kMaxSchemaBytes, 'x') + "\"}"), "");
  EXPECT_THAT(schema("{\"enum\": [1" + repeated(",1", 2000) + "]}"), HasSubstr("2000"));
  EXPECT_NE(schema("{\"title\": [1" + repeated(",1", 20000) + "]}"), "");
  EXPECT_NE(schema("{\"title\": \"\xFF\"}"), "");
  EXPECT_NE(schema(R"({"type": "null", "type": "string"})"), "");
  EXPECT_NE(schema("3"), "");
  EXPECT_NE(schema("{"), "");
}

TEST(GrammarSpec, LimitsRegularExpressions) {
  const auto regex = [](const std::string& text) { return reason(RegexSpec{text}); };
  for (const char* text :
       {"a{10000}", "(a{100}){100}", "[({]{5}", "\\({3}", "a{2}b{9999}", "x{", "{}"})
    EXPECT_EQ(regex(text), "") << text;
  EXPECT_THAT(regex("ab{10001}"), HasSubstr("at byte 2"));
  EXPECT_NE(regex("((a{30}b){30}c){30}"), "");
  EXPECT_NE(regex("a{100}{101}"), "");
  EXPECT_NE(regex("a{1,99999999999999999999}"), "");
  EXPECT_NE(regex(repeated("(", 65) + "a" + repeated(")", 65)), "");
  EXPECT_EQ(regex(repeated("(", 64) + "a" + repeated(")", 64)), "");
  EXPECT_NE(regex(std::string(kMaxRegexBytes + 1, 'a')), "");
  EXPECT_NE(regex("\xC3("), "");
  EXPECT_NE(regex(std::string("a\0b", 3)), "");
  EXPECT_NE(regex(""), "");
}

TEST(GrammarSpec, LimitsGrammarsChoicesAndTags) {
  EXPECT_EQ(reason(EbnfSpec{"root ::= \"({\" [(] # ((\n x{3}"}), "");
  EXPECT_NE(reason(EbnfSpec{"root ::= ((\"a\"{200}){200})"}), "");
  EXPECT_THAT(reason(EbnfSpec{" %llguidance {}\nstart: \"a\""}), HasSubstr("Lark"));
  EXPECT_NE(reason(EbnfSpec{std::string(kMaxEbnfBytes + 1, 'a')}), "");
  EXPECT_NE(reason(ChoiceSpec{}), "");
  EXPECT_NE(reason(ChoiceSpec{{"a", ""}}), "");
  EXPECT_NE(reason(ChoiceSpec{{"\xFF"}}), "");
  EXPECT_NE(reason(ChoiceSpec{std::vector<std::string>(1001, "a")}), "");
  EXPECT_NE(reason(ChoiceSpec{{std::string(70000, 'a')}}), "");
  EXPECT_NE(reason(StructuralTagSpec{"[]"}), "");
  EXPECT_NE(reason(StructuralTagSpec{"{"}), "");
}

TEST(GrammarSpec, ChecksSchemasInsideTags) {
  const auto tag = [](const std::string& schema) {
    return StructuralTagSpec{
        R"({"type": "structural_tag", "format": {"type": "tags_with_separator", "separator": ";",
            "tags": [{"type": "tag", "begin": "a", "end": "b", "content":
              {"type": "json_schema", "json_schema": )" +
        schema + "}}]}}"};
  };
  EXPECT_EQ(reason(tag(R"({"type": "object"})")), "");
  EXPECT_THAT(reason(tag(R"({"type": "object", "not": {}})")), ::testing::HasSubstr("not"));
}

TEST(GrammarSpec, DifferentSpecsHaveDifferentDigests) {
  EXPECT_NE(digest_of(GrammarSpec(RegexSpec{"a"})), digest_of(GrammarSpec(EbnfSpec{"a"})));
  EXPECT_NE(digest_of(GrammarSpec(JsonSchemaSpec{"{}", true})),
            digest_of(GrammarSpec(JsonSchemaSpec{"{}", false})));
  EXPECT_NE(digest_of(GrammarSpec(ChoiceSpec{{"ab", "c"}})),
            digest_of(GrammarSpec(ChoiceSpec{{"a", "bc"}})));
}

}  // namespace
}  // namespace valora::grammar
