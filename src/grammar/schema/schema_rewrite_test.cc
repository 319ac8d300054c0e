#include "grammar/schema/schema_rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json/json.h"
#include "grammar/testing/test_grammars.h"

namespace valora::grammar {
namespace {

using ::testing::HasSubstr;

// A "oneOf" of these cases, with definitions they may refer to.
std::string one_of(const std::string& cases, const std::string& definitions = "{}") {
  return R"({"oneOf": [)" + cases + R"(], "$defs": )" + definitions + "}";
}

std::string refusal(const std::string& schema, bool strict = true) {
  static GrammarCompiler compiler(byte_vocabulary());
  const auto made = compiler.compile(JsonSchemaSpec{schema, strict});
  if (made.ok()) return "";
  EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
  return made.error().message;
}

bool has(const std::string& schema, const std::string& text, bool strict = true) {
  return matches(start(JsonSchemaSpec{schema, strict}), text);
}

constexpr const char* kPets = R"({
  "Cat": {"type": "object", "properties": {"kind": {"const": "cat", "title": "Kind", "type": "string"},
          "lives": {"type": "integer"}}, "required": ["kind", "lives"], "title": "Cat"},
  "Dog": {"type": "object", "properties": {"kind": {"enum": ["dog"]}, "name": {"type": "string"}},
          "required": ["kind", "name"]}})";

TEST(SchemaRewrite, ResolvesReferencedOneOfCasesWithATag) {
  const std::string pets = one_of(R"({"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"})", kPets);
  EXPECT_TRUE(has(pets, R"({"kind": "cat", "lives": 9})"));
  EXPECT_TRUE(has(pets, R"({"kind": "dog", "name": "x"})"));
  EXPECT_FALSE(has(pets, R"({"kind": "dog", "lives": 9})"));
}

TEST(SchemaRewrite, RequiresTheTagEvenIfCasesDoNot) {
  const std::string pets = one_of(
      R"({"type": "object", "properties": {"kind": {"const": "cat"}, "age": {"type": "integer"}}},
         {"type": "object", "properties": {"kind": {"const": "dog"}}})");
  EXPECT_TRUE(has(pets, R"({"kind": "cat", "age": 3})"));
  EXPECT_TRUE(has(pets, R"({"kind": "dog"})"));
  EXPECT_FALSE(has(pets, "{}")) << "valid under both";
  EXPECT_FALSE(has(pets, R"({"age": 3})"));
}

TEST(SchemaRewrite, RequiresTheDiscriminator) {
  const std::string cases = R"("oneOf": [
      {"type": "object", "properties": {"kind": {"const": "cat"}, "a": {"type": "null"}}, "required": ["a"]},
      {"type": "object", "properties": {"kind": {"const": "dog"}, "b": {"type": "null"}}, "required": ["b"]}])";
  EXPECT_TRUE(has("{" + cases + "}", R"({"b": null})"))
      << "the cases exclude each other without it";
  const std::string pets = "{" + cases + R"(, "discriminator": {"propertyName": "kind"}})";
  EXPECT_FALSE(has(pets, R"({"b": null})"));
  EXPECT_TRUE(has(pets, R"({"kind": "dog", "b": null})"));
  for (const char* other : {"3", "{}", R"({"propertyName": 3})", R"({"propertyName": "x"})"})
    EXPECT_TRUE(has("{" + cases + R"(, "discriminator": )" + other + "}", R"({"b": null})"));
}

TEST(SchemaRewrite, HandlesNestedTaggedUnions) {
  const std::string nested = one_of(
      R"({"$ref": "#/$defs/Pet"}, {"type": "object", "properties": {"kind": {"const": "car"}}, "required": ["kind"]})",
      R"({"Pet": {"oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]},)" +
          std::string(kPets).substr(1));
  EXPECT_TRUE(has(nested, R"({"kind": "cat", "lives": 9})"));
  EXPECT_TRUE(has(nested, R"({"kind": "car"})"));
}

TEST(SchemaRewrite, AcceptsMutuallyExclusiveOneOfCases) {
  for (const char* cases :
       {R"({"type": "object", "properties": {"a": {"type": "boolean"}}}, {"type": "null"})",
        R"({"type": "integer", "minimum": 0, "maximum": 500}, {"$ref": "#/$defs/L"})",
        R"({"type": "string", "maxLength": 3}, {"type": "string", "minLength": 4})",
        R"({"type": "integer", "maximum": 3}, {"type": "number", "exclusiveMinimum": 3})",
        R"({"const": 1}, {"const": "1"}, {"type": "null"})",
        R"({"const": 1.5}, {"type": "integer"})",
        R"({"type": ["string", "null"]}, {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/L"}]})",
        R"({"type": "array", "items": {"type": "integer"}, "maxItems": 1}, {"$ref": "#/$defs/L"})",
        R"({"type": "array", "items": {"type": "string"}, "minItems": 1}, {"$ref": "#/$defs/L"})",
        R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
              {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})",
        R"({"type": "object", "properties": {"mail": {"type": "string"}}, "required": ["mail"]},
              {"type": "object", "properties": {"phone": {"type": "string"}}, "required": ["phone"]})",
        R"({"allOf": [{"$ref": "#/$defs/L"}]}, {"type": "boolean"})",
        R"({"const": {"a": 1, "b": 2}}, {"const": {"b": 2, "a": 3}})"})
    EXPECT_EQ(
        refusal(one_of(cases,
                       R"({"L": {"type": "array", "items": {"type": "integer"}, "minItems": 2}})")),
        "")
        << cases;
}

TEST(SchemaRewrite, RefusesOverlappingOneOfCasesByName) {
  for (
      const char* cases :
      {R"({"type": "integer"}, {"type": "number"})", R"({"const": 1}, {"const": 1.0})",
       R"({"const": 1.0}, {"type": "integer"})",
       R"({"type": "string"}, {"type": "string", "maxLength": 3})",
       R"({"type": "integer", "maximum": 3}, {"type": "number", "minimum": 3})",
       R"({"type": "integer", "exclusiveMaximum": 9007199254740993},
                {"type": "integer", "minimum": 9007199254740992})",
       R"({}, {"type": "null"})", R"({"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"})",
       R"({"const": {"a": 1, "b": 2}}, {"const": {"b": 2, "a": 1}})",
       // Under the first schema, any value except an object is valid.
       R"({"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"type": "null"})",
       R"({"type": "object", "properties": {"a": {"type": "integer"}}},
              {"type": "object", "properties": {"b": {"type": "integer"}}})",
       R"({"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": {"type": "string"}})"})
    EXPECT_THAT(refusal(one_of(cases, R"({"A": {"type": "integer"}})")),
                HasSubstr("#/oneOf has cases 0 and 1"))
        << cases;
}

TEST(SchemaRewrite, RefusesOpenObjectsThatMayOverlap) {
  const std::string contacts = one_of(
      R"({"type": "object", "properties": {"mail": {"type": "null"}}, "required": ["mail"]},
         {"type": "object", "properties": {"phone": {"type": "null"}}, "required": ["phone"]})");
  EXPECT_EQ(refusal(contacts, true), "");
  EXPECT_NE(refusal(contacts, false), "") << "an object may have both";
}

TEST(SchemaRewrite, ExclusionProofOfRecursiveCasesTerminates) {
  EXPECT_NE(refusal(one_of(R"({"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"})",
                           R"({"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]},
                               "B": {"anyOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/A"}]}})")),
            "");
  EXPECT_NE(refusal(R"({"oneOf": [{"$ref": "#"}, {"$ref": "#"}]})"), "");
}

TEST(SchemaRewrite, ResolvesEscapedReferences) {
  const auto under = [](const std::string& ref, const std::string& definitions) {
    return R"({"type": "object", "properties": {"p": {"$ref": ")" + ref +
           R"("}}, "required": ["p"], )" + definitions + "}";
  };
  for (
      const auto& [ref, definitions] :
      {std::pair{"#/$defs/a~1b", R"("$defs": {"a/b": {"type": "boolean"}})"},
       {"#/$defs/a~0b", R"("$defs": {"a~b": {"type": "boolean"}})"},
       {"#/$defs/a~01", R"("$defs": {"a~1": {"type": "boolean"}})"},
       {"#/definitions/Foo%3CBar%3E", R"("definitions": {"Foo<Bar>": {"type": "boolean"}})"},
       {"#/definitions/a%7E1b%25", R"("definitions": {"a/b%": {"type": "boolean"}})"},
       {"#/$defs/", R"("$defs": {"": {"type": "boolean"}})"},
       {"#/$defs/x/anyOf/1",
        R"("$defs": {"x": {"anyOf": [{"type": "null"}, {"type": "boolean"}]}})"},
       {"#/components/schemas/X",
        R"("components": {"schemas": {"X": {"$ref": "#/components/schemas/Y~1"}, "Y/": {"type": "boolean"}}})"},
       {"#/$defs/target0~1",
        R"("$defs": {"target0": {"type": "null"}, "target0/": {"type": "boolean"}})"}}) {
    const std::string schema = under(ref, definitions);
    EXPECT_TRUE(has(schema, R"({"p": true})")) << schema;
    EXPECT_FALSE(has(schema, R"({"p": null})")) << schema;
  }
  for (const char* ref :
       {"#/$defs/a~2b", "#/$defs/a%2", "#/$defs/a%zz", "#/$defs/none", "#a", "#/$defs/l/1"})
    EXPECT_THAT(refusal(under(ref, R"("$defs": {"l": {"enum": [1]}})")),
                HasSubstr("#/properties/p/$ref points to nothing"))
        << ref;
}

TEST(SchemaRewrite, ChecksReferenceTargetsOutsideKeywords) {
  EXPECT_THAT(refusal(R"({"$ref": "#/x/y", "x": {"y": {"type": "object", "not": {}}}})"),
              HasSubstr("#/x/y has \"not\""));
  EXPECT_THAT(refusal(R"({"$ref": "#/x/y", "x": {"y": {"oneOf": [{}, {}]}}})"),
              HasSubstr("#/x/y/oneOf"));
}

TEST(SchemaRewrite, RecursionThroughEscapedReferencesTerminates) {
  const std::string tree =
      R"({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "object", "properties":
      {"next": {"anyOf": [{"$ref": "#/$defs/a~1b"}, {"type": "null"}]}}, "required": ["next"]}}})";
  EXPECT_TRUE(has(tree, R"({"next": {"next": {"next": null}}})"));
}

TEST(SchemaRewrite, RefusesTooManyCopies) {
  std::string refs, targets;
  for (int i = 0; i < 300; ++i) {
    const std::string name = std::to_string(i);
    refs += (i == 0 ? "" : ", ") + std::string(R"({"$ref": "#/x/)") + name + R"(~1"})";
    targets += (i == 0 ? "" : ", ") + ("\"" + name + "/\": {\"enum\": [");
    for (int value = 0; value < 6; ++value) targets += std::to_string(value) + ", ";
    targets += "0]}";
  }
  const auto of = [&](const std::string& more) {
    return "{\"x\": {" + targets + "}, \"anyOf\": [" + refs + "]" + more + "}";
  };
  EXPECT_TRUE(rewritten_schema(of(""), true).ok());
  // Each level contains all further ones.
  std::string nested = "{\"anyOf\": [{\"$ref\": \"#/y~1\"}], \"y/\": ", end = "}";
  for (int level = 0; level < 60; ++level) {
    nested += R"({"anyOf": [{"$ref": "#/y~1)";
    for (int up = 0; up < level; ++up) nested += "/anyOf/1";
    nested += R"("}, )";
    end = "]}" + end;
  }
  nested += "{\"enum\": [" + std::string(R"("x", )");
  for (int i = 0; i < 1900; ++i) nested += std::to_string(i) + ", ";
  nested += "0]}" + end;
  ASSERT_TRUE(Json::accept(nested));
  EXPECT_THAT(rewritten_schema(nested, true).error().message, HasSubstr("too many references"));
}

TEST(SchemaRewrite, LeavesOtherSchemasUnchanged) {
  for (const char* schema :
       {R"({"z": 1, "a": {"$ref": 3}})", R"({"const": {"oneOf": [{"$ref": "#/x"}]}})",
        R"({"$ref": "#/$defs/A", "$defs": {"A": {"type": "null"}}})"})
    EXPECT_EQ(rewritten_schema(schema, true).value(), schema);
}

}  // namespace
}  // namespace valora::grammar
