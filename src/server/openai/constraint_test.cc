#include "server/openai/generation_fields.h"

#include <gtest/gtest.h>

namespace valora::server {
namespace {

using Kind = AnswerConstraint::Kind;

Result<std::optional<AnswerConstraint>> constraint_of(const std::string& body) {
  return parse_constraint(Json::parse(body), body);
}
AnswerConstraint found(const std::string& body) {
  const auto constraint = constraint_of(body);
  EXPECT_TRUE(constraint.ok()) << constraint.error().message;
  EXPECT_TRUE(constraint.ok() && *constraint) << body;
  return constraint.ok() && *constraint ? **constraint : AnswerConstraint{};
}

TEST(ParseConstraint, PlainTextHasNoConstraint) {
  for (const char* body :
       {"{}", R"({"response_format": {"type": "text"}})", R"({"response_format": null})",
        R"({"structured_outputs": null, "guided_json": null, "guided_choice": []})",
        R"({"structured_outputs": {"json": null, "disable_fallback": false}})"})
    EXPECT_FALSE(constraint_of(body).value()) << body;
}

TEST(ParseConstraint, ReadsEveryResponseFormat) {
  EXPECT_EQ(found(R"({"response_format": {"type": "json_object"}})").kind, Kind::kJsonObject);
  const auto schema = found(R"({"response_format": {"type": "json_schema", "json_schema":
      {"name": "n", "description": "d", "strict": true, "schema": {"z": 1, "a": {"y": 2, "b": 3}}}}})");
  EXPECT_EQ(schema.kind, Kind::kJsonSchema);
  EXPECT_EQ(schema.text, R"({"z":1,"a":{"y":2,"b":3}})") << "the order of the client";
  EXPECT_TRUE(schema.strict);
  EXPECT_EQ(schema.param, "response_format");
  EXPECT_FALSE(found(R"({"response_format": {"type": "json_schema",
      "json_schema": {"strict": false, "schema": {}}}})")
                   .strict);
  EXPECT_EQ(found(R"({"response_format": {"type": "labels"}})").kind, Kind::kLabels);
  EXPECT_EQ(found(R"({"response_format": {"type": "boxes"}})").kind, Kind::kBoxes);
  const auto tag = found(R"({"response_format": {"type": "structural_tag", "format": {"b": 1}}})");
  EXPECT_EQ(tag.kind, Kind::kStructuralTag);
  EXPECT_EQ(tag.text, R"({"type":"structural_tag","format":{"b":1}})");
}

TEST(ParseConstraint, ReadsVllmFieldsInBothSpellings) {
  for (const auto& [body, kind, text] :
       {std::tuple{R"({"structured_outputs": {"json": {"b": 1, "a": 2}}})", Kind::kJsonSchema,
                   R"({"b":1,"a":2})"},
        {R"({"guided_json": {"b": 1, "a": 2}})", Kind::kJsonSchema, R"({"b":1,"a":2})"},
        {R"({"guided_json": "{ }"})", Kind::kJsonSchema, "{ }"},
        {R"({"structured_outputs": {"regex": "a+"}})", Kind::kRegex, "a+"},
        {R"({"guided_regex": "a+"})", Kind::kRegex, "a+"},
        {R"({"structured_outputs": {"grammar": "root ::= \"a\""}})", Kind::kEbnf, "root ::= \"a\""},
        {R"({"guided_grammar": "x"})", Kind::kEbnf, "x"},
        {R"({"structured_outputs": {"json_object": true}})", Kind::kJsonObject, ""},
        {R"({"structured_outputs": {"structural_tag": "{}"}})", Kind::kStructuralTag, "{}"}}) {
    const auto constraint = found(body);
    EXPECT_EQ(constraint.kind, kind) << body;
    EXPECT_EQ(constraint.text, text) << body;
  }
  EXPECT_EQ(found(R"({"structured_outputs": {"choice": ["a", "b"]}})").choices,
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(found(R"({"guided_choice": ["a", "b"]})").param, "guided_choice");
}

TEST(ParseConstraint, AcceptsOneFormUnderTwoNames) {
  EXPECT_EQ(found(R"({"guided_json": {"a": 1}, "structured_outputs": {"json": {"a": 1}}})").text,
            R"({"a":1})");
  EXPECT_EQ(found(R"({"guided_choice": ["a"], "structured_outputs": {"choice": ["a"]}})").choices,
            std::vector<std::string>{"a"});
  EXPECT_FALSE(
      constraint_of(R"({"guided_choice": ["a"], "structured_outputs": {"choice": ["b"]}})").ok());
  EXPECT_FALSE(
      constraint_of(R"({"guided_regex": "a", "structured_outputs": {"grammar": "a"}})").ok());
}

TEST(ParseConstraint, AcceptsASchemaOutsideOpenAIsPlace) {
  for (const char* body :
       {R"({"response_format": {"type": "json_object", "schema": {"b": 1, "a": 2}}})",
        R"({"response_format": {"type": "json_schema", "schema": {"b": 1, "a": 2}}})",
        R"({"response_format": {"type": "json_schema", "name": "n", "json_schema": null,
            "schema": {"b": 1, "a": 2}}})"}) {
    const auto schema = found(body);
    EXPECT_EQ(schema.kind, Kind::kJsonSchema) << body;
    EXPECT_EQ(schema.text, R"({"b":1,"a":2})") << body;
    EXPECT_TRUE(schema.strict) << body;
    EXPECT_EQ(schema.param, "response_format") << body;
  }
  EXPECT_FALSE(
      found(R"({"response_format": {"type": "json_schema", "strict": false, "schema": {}}})")
          .strict);
  EXPECT_EQ(found(R"({"response_format": {"type": "json_object", "schema": null}})").kind,
            Kind::kJsonObject);
}

std::optional<JsonSpacing> whitespace_of(const std::string& body) {
  const Json json = Json::parse(body);
  EXPECT_TRUE(parse_constraint(json, body).ok()) << body;
  const auto spacing = parse_json_whitespace(json);
  EXPECT_TRUE(spacing.ok()) << body;
  return spacing.ok() ? *spacing : std::nullopt;
}

TEST(ParseConstraint, ReadsJsonWhiteSpace) {
  for (const char* body :
       {"{}", R"({"structured_outputs": {"json": {}}})", R"({"structured_outputs": null})",
        R"({"structured_outputs": {"disable_any_whitespace": false, "json_whitespace": null}})"})
    EXPECT_EQ(whitespace_of(body), std::nullopt) << body;
  EXPECT_EQ(
      whitespace_of(R"({"structured_outputs": {"disable_any_whitespace": true, "json": {}}})"),
      JsonSpacing::kCompact);
  for (const auto& [name, spacing] : {std::pair{"bounded", JsonSpacing::kBounded},
                                      {"compact", JsonSpacing::kCompact},
                                      {"free", JsonSpacing::kFree}})
    EXPECT_EQ(whitespace_of(R"({"response_format": {"type": "json_object"},
                  "structured_outputs": {"json_whitespace": ")" +
                            std::string(name) + "\"}}"),
              spacing);
  for (const char* fields : {R"("json_whitespace": "none")", R"("json_whitespace": true)",
                             R"("disable_any_whitespace": "yes")",
                             R"("json_whitespace": "free", "disable_any_whitespace": true)"}) {
    const auto refused = parse_json_whitespace(
        Json::parse(R"({"structured_outputs": {)" + std::string(fields) + "}}"));
    ASSERT_FALSE(refused.ok()) << fields;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().param, "structured_outputs");
  }
}

TEST(ParseConstraint, RefusesAWhiteSpacePatternByName) {
  const auto refused =
      constraint_of(R"({"structured_outputs": {"json": {}, "whitespace_pattern": "[ ]?"}})");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("whitespace_pattern"), std::string::npos);
  EXPECT_NE(refused.error().message.find("json_whitespace"), std::string::npos);
}

TEST(ParseConstraint, RefusalNamesTheField) {
  for (const auto& [body, param] :
       {std::pair{R"({"response_format": 3})", "response_format"},
        {R"({"response_format": {}})", "response_format"},
        {R"({"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}})",
         "response_format"},
        {R"({"response_format": {"type": "json_schema", "json_schema": {"schema": 3}}})",
         "response_format"},
        {R"({"response_format": {"type": "json_schema",
             "json_schema": {"schema": {}, "strict": "yes"}}})",
         "response_format"},
        {R"({"response_format": {"type": "json_object", "schema": 3}})", "response_format"},
        {R"({"response_format": {"type": "json_schema", "json_schema": {"schema": {}},
             "schema": {}}})",
         "response_format"},
        {R"({"structured_outputs": []})", "structured_outputs"},
        {R"({"structured_outputs": {"choice": [1]}})", "structured_outputs"},
        {R"({"structured_outputs": {"regex": 1}})", "structured_outputs"},
        {R"({"structured_outputs": {"regex": "a", "choice": ["a"]}})", "structured_outputs"},
        {R"({"response_format": {"type": "json_object"}, "guided_regex": "a"})", "guided_regex"}}) {
    const auto constraint = constraint_of(body);
    ASSERT_FALSE(constraint.ok()) << body;
    EXPECT_EQ(constraint.error().code, ErrorCode::kInvalidArgument) << body;
    EXPECT_EQ(constraint.error().param, param) << body;
  }
}

}  // namespace
}  // namespace valora::server
