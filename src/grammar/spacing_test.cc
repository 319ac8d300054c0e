#include <gtest/gtest.h>

#include "grammar/testing/test_grammars.h"

namespace valora::grammar {
namespace {

constexpr const char* kNested = R"({"type": "object", "required": ["a", "b"],
  "properties": {"a": {"type": "array", "items": {"type": "integer"}},
                 "b": {"type": "object", "properties": {"c": {"type": "string"}}}}})";

bool has(const std::string& text, const char* schema = kNested) {
  return matches(start(JsonSchemaSpec{schema}), text);
}

TEST(JsonSpacing, BoundedAcceptsPrettyPrintedJson) {
  for (const char* text :
       {R"({"a":[1,2],"b":{"c":"x"}})", R"({"a": [1, 2], "b": {"c": "x"}})",
        R"({ "a": [ 1, 2 ], "b": { "c": "x" } })", R"({"a" : [], "b" : {}})",
        "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {\n    \"c\": \"x\"\n  }\n}",
        "{\n\t\"a\": [\n\t\t1\n\t],\n\t\"b\": {\n\t\t\"c\": \"x\"\n\t}\n}",
        "{\n\"a\": [1],\n\"b\": {}\n}"}) {
    EXPECT_TRUE(has(text)) << text;
  }
}

TEST(JsonSpacing, BoundedStopsEndlessWhiteSpace) {
  for (const char* text :
       {"{\n\n\"a\": [],\"b\":{}}", "{\"a\"\n: [],\"b\":{}}", "{\"a\": [] ,\"b\":{}}",
        "{\"a\": []\n,\"b\":{}}", "{\"a\":\n[],\"b\":{}}", "{\"a\":  [],\"b\":{}}",
        "{  \"a\":[],\"b\":{}}", "{\r\n\"a\":[],\"b\":{}}", "{\n \t\"a\":[],\"b\":{}}"}) {
    EXPECT_FALSE(has(text)) << text;
  }
  EXPECT_TRUE(has("{\n" + std::string(32, ' ') + "\"a\":[],\"b\":{}}"));
  EXPECT_FALSE(has("{\n" + std::string(33, ' ') + "\"a\":[],\"b\":{}}"));
}

TEST(JsonSpacing, AppliesToJsonObjects) {
  EXPECT_TRUE(matches(start(JsonObjectSpec{}), "{\"a\": {\"b\": [1, null]}}"));
  EXPECT_FALSE(matches(start(JsonObjectSpec{}), "{\"a\"\n: 1}"));
}

StructuralTagSpec tag(const std::string& fields) {
  return {R"({"type": "structural_tag", "format": {"type": "json_schema", "json_schema":
              {"type": "array", "items": {"type": "null"}})" +
          fields + "}}"};
}

TEST(JsonSpacing, AppliesToSchemasInATagByDefault) {
  EXPECT_TRUE(matches(start(tag("")), "[\n  null,\n  null\n]"));
  EXPECT_FALSE(matches(start(tag("")), "[\n\nnull]"));
  const std::string two = R"(, "max_whitespace_cnt": 2)";
  EXPECT_TRUE(matches(start(tag(two)), "[\n\nnull]"));
  EXPECT_FALSE(matches(start(tag(two)), "[\n\n\nnull]"));
}

TEST(JsonSpacing, WhiteSpaceCountOfATagIsBounded) {
  for (const char* most : {"0", "-1", "1.5", "10001", "1000001", "\"2\""})
    EXPECT_FALSE(check(tag(std::string(R"(, "max_whitespace_cnt": )") + most)).ok()) << most;
  EXPECT_TRUE(check(tag(R"(, "max_whitespace_cnt": null)")).ok());
}

TEST(JsonSpacing, CompactIsOneLineLikeVllm) {
  const auto compact = [](const std::string& text) {
    return matches(start(JsonSchemaSpec{kNested, true, JsonSpacing::kCompact}), text);
  };
  EXPECT_TRUE(compact(R"({"a": [1, 2], "b": {"c": "x"}})"));
  EXPECT_TRUE(compact(R"({"a": [], "b": {}})"));
  for (const char* text :
       {R"({"a":[1,2],"b":{"c":"x"}})", R"({"a": [1,2], "b": {}})", R"({"a": [ 1], "b": {}})",
        R"({ "a": [], "b": {}})", R"({"a" : [], "b": {}})", R"({"a": [] , "b": {}})",
        R"({"a":  [], "b": {}})", "{\n\"a\": [], \"b\": {}}", R"({"a": [], "b": {} })",
        R"({"a": [], "b": { }})"}) {
    EXPECT_FALSE(compact(text)) << text;
  }
  const JsonObjectSpec any{JsonSpacing::kCompact};
  EXPECT_TRUE(matches(start(any), R"({"a": {"b": [1, null]}, "c": "x"})"));
  EXPECT_FALSE(matches(start(any), "{\"a\":\n1}"));
}

TEST(JsonSpacing, FreeAcceptsAnyWhiteSpace) {
  const std::string much = std::string(200, '\n') + std::string(300, ' ') + "\t\r";
  const std::string text = "{" + much + "\"a\"" + much + ":" + much + "[1" + much + "," + much +
                           "2]" + much + ",\"b\":{" + much + "}}";
  EXPECT_TRUE(matches(start(JsonSchemaSpec{kNested, true, JsonSpacing::kFree}), text));
  EXPECT_FALSE(has(text));
  EXPECT_TRUE(matches(start(JsonObjectSpec{JsonSpacing::kFree}), text));
}

TEST(JsonSpacing, TagLimitOverridesFreeSpacingButNotCompact) {
  const auto spaced = [](JsonSpacing spacing, const std::string& fields) {
    StructuralTagSpec spec = tag(fields);
    spec.spacing = spacing;
    return start(spec);
  };
  const std::string much = "[" + std::string(100, '\n') + "null]";
  EXPECT_TRUE(matches(spaced(JsonSpacing::kFree, ""), much));
  EXPECT_FALSE(matches(spaced(JsonSpacing::kFree, R"(, "max_whitespace_cnt": 2)"), much))
      << "as the tag says";
  for (const char* fields : {"", R"(, "max_whitespace_cnt": 2)"}) {
    EXPECT_TRUE(matches(spaced(JsonSpacing::kCompact, fields), "[null, null]"));
    EXPECT_FALSE(matches(spaced(JsonSpacing::kCompact, fields), "[ null]")) << fields;
  }
}

bool is_number(const std::string& schema, const std::string& text) {
  return has(text, schema.c_str());
}

TEST(JsonNumbers, IntegersHaveAtMostTheDigitsOf64Bits) {
  for (const char* schema :
       {R"({"type": "integer"})", R"({"type": "integer", "format": "int64"})",
        R"({"type": "integer", "minimum": 3})", R"({"type": ["integer", "null"]})", "{}"}) {
    for (const char* text : {"7", "18446744073709551615", "9223372036854775807"})
      EXPECT_TRUE(is_number(schema, text)) << schema << text;
    EXPECT_TRUE(is_number(schema, std::string(24, '9'))) << schema;
    EXPECT_FALSE(is_number(schema, std::string(25, '9'))) << schema;
  }
  EXPECT_TRUE(is_number(R"({"type": "integer", "maximum": 3})", "-9223372036854775808"));
  EXPECT_FALSE(is_number(R"({"type": "integer", "maximum": 3})", "-" + std::string(25, '9')));
}

TEST(JsonNumbers, NumbersHaveAtMostTheDigitsOfADouble) {
  for (const char* schema :
       {R"({"type": "number"})", R"({"type": "number", "format": "double"})", "{}"}) {
    for (const char* text :
         {"0", "-0.5", "1.7976931348623157e+308", "5E-324", "2.2250738585072014e-308",
          "0.0000012345678901234567", "123456789012345680000"})
      EXPECT_TRUE(is_number(schema, text)) << schema << text;
    EXPECT_FALSE(is_number(schema, "0." + std::string(25, '3'))) << schema;
    EXPECT_FALSE(is_number(schema, "1e1000")) << schema;
  }
  EXPECT_FALSE(is_number(R"({"type": "number", "minimum": 0})", std::string(30, '9')));
}

TEST(JsonNumbers, TimesHaveAtMostNanoseconds) {
  const std::string schema = R"({"type": "string", "format": "date-time"})";
  EXPECT_TRUE(is_number(schema, "\"2024-01-01T00:00:00.123456789Z\""));
  EXPECT_FALSE(is_number(schema, "\"2024-01-01T00:00:00.1234567890Z\""));
}

}  // namespace
}  // namespace valora::grammar
