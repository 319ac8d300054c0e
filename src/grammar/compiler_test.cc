#include "grammar/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "base/json/json.h"
#include "grammar/testing/byte_vocabulary.h"
#include "grammar/testing/test_grammars.h"

namespace valora::grammar {
namespace {

using ::testing::HasSubstr;

class CompilerTest : public ::testing::Test {
 protected:
  bool has(const GrammarSpec& spec, const std::string& text) {
    const auto compiled = compiler_.compile(spec);
    EXPECT_TRUE(compiled.ok()) << compiled.error().message;
    if (!compiled.ok()) return false;
    return matches(*GrammarMatcher::start(*compiled), text);
  }
  std::string refusal(const GrammarSpec& spec) {
    const auto compiled = compiler_.compile(spec);
    if (compiled.ok()) return "";
    EXPECT_EQ(compiled.error().code, ErrorCode::kInvalidArgument) << compiled.error().message;
    return compiled.error().message;
  }
  GrammarCompiler compiler_{byte_vocabulary()};
};

TEST_F(CompilerTest, JsonObjectSpecMatchesAnyObject) {
  EXPECT_TRUE(has(JsonObjectSpec{}, R"({"a": [1, {"b": null}], "c": "é\n"})"));
  EXPECT_FALSE(has(JsonObjectSpec{}, "[1]"));
  EXPECT_FALSE(has(JsonObjectSpec{}, R"({"a": 1)"));
}

TEST_F(CompilerTest, AdditionalPropertiesFollowTheSchema) {
  const std::string schema =
      R"({"type": "object", "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 12}},
          "required": ["a"]})";
  EXPECT_TRUE(has(JsonSchemaSpec{schema}, R"({"a": 12})"));
  EXPECT_FALSE(has(JsonSchemaSpec{schema}, R"({"a": 13})"));
  EXPECT_FALSE(has(JsonSchemaSpec{schema}, R"({"a": 3, "b": 1})"));
  EXPECT_TRUE(has(JsonSchemaSpec{schema, false}, R"({"a": 3, "b": 1})"));
}

TEST_F(CompilerTest, AdditionalPropertiesExcludeNamedOnes) {
  const JsonSchemaSpec spec{R"({"type": "object", "properties": {
      "ab": {"type": "null"}, "g\u00f6": {"type": "null"}, "q\"r": {"type": "null"}}})",
                            false};
  for (const char* other : {"a", "abc", "b", "gx", "q", "z\\u0061", "qr"})
    EXPECT_TRUE(has(spec, std::string("{\"") + other + "\": 1}")) << other;
  for (const char* named : {"ab", "a\\u0062", "\\u0061b", "gö", "g\\u00f6", "q\\\"r", "q\"r"})
    EXPECT_FALSE(has(spec, std::string("{\"") + named + "\": 1}")) << named;
  EXPECT_TRUE(has(spec, R"({"ab": null, "gö": null, "q\"r": null, "x": 1})"));
}

TEST_F(CompilerTest, PropertiesKeepTheirOrder) {
  const JsonSchemaSpec spec{
      R"({"type": "object", "properties": {"z": {"type": "null"}, "a": {"type": "null"}},
          "required": ["z", "a"]})"};
  EXPECT_TRUE(has(spec, R"({"z": null, "a": null})"));
  EXPECT_FALSE(has(spec, R"({"a": null, "z": null})"));
}

TEST_F(CompilerTest, RegexMatchesTheWholeAnswer) {
  EXPECT_TRUE(has(RegexSpec{"[A-Z]{2}-\\d+"}, "AB-12"));
  EXPECT_FALSE(has(RegexSpec{"[A-Z]{2}-\\d+"}, "AB-"));
  EXPECT_FALSE(has(RegexSpec{"ab"}, "abc"));
}

TEST_F(CompilerTest, ChoicesMatchLiterally) {
  const ChoiceSpec spec{{"yes", "a\"b\\c", "line\none", "é☃", "[x]"}};
  for (const std::string& choice : spec.choices) EXPECT_TRUE(has(spec, choice)) << choice;
  EXPECT_FALSE(has(spec, "ye"));
  EXPECT_FALSE(has(spec, "x"));
}

TEST_F(CompilerTest, EbnfMayBeRecursive) {
  const EbnfSpec spec{"root ::= \"(\" root \")\" | \"x\""};
  EXPECT_TRUE(has(spec, "((x))"));
  EXPECT_FALSE(has(spec, "((x)"));
}

TEST_F(CompilerTest, StructuralTagConstrainsItsContent) {
  const StructuralTagSpec spec{
      R"({"type": "structural_tag", "format": {"type": "tag", "begin": "<a>",
          "content": {"type": "json_schema", "json_schema": {"type": "boolean"}}, "end": "</a>"}})"};
  EXPECT_TRUE(has(spec, "<a>true</a>"));
  EXPECT_FALSE(has(spec, "<a>1</a>"));
}

TEST_F(CompilerTest, TriggerStartsATagInFreeText) {
  const StructuralTagSpec spec{
      R"({"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<c>"],
          "tags": [{"type": "tag", "begin": "<c>1", "end": "</c>",
                    "content": {"type": "json_schema", "json_schema": {"type": "boolean"}}}]}})"};
  EXPECT_TRUE(has(spec, "a < b <c"));
  EXPECT_TRUE(has(spec, "<cd"));
  EXPECT_TRUE(has(spec, "x<c>1true</c>y<c>1false</c>"));
  EXPECT_FALSE(has(spec, "<c>2"));
  EXPECT_FALSE(has(spec, "<c>11</c>"));
}

TEST_F(CompilerTest, RecursiveSchemaMatches) {
  const JsonSchemaSpec spec{
      R"({"$defs": {"n": {"type": "object", "properties": {"c": {"$ref": "#/$defs/n"}}}},
          "$ref": "#/$defs/n"})"};
  EXPECT_TRUE(has(spec, R"({"c": {"c": {}}})"));
}

TEST_F(CompilerTest, RefusesUnsupportedSpecs) {
  const auto schema = [&](const std::string& text) { return refusal(JsonSchemaSpec{text}); };
  EXPECT_THAT(schema(R"({"allOf": [{"type": "integer"}, {"type": "integer"}]})"),
              HasSubstr("cannot be applied in full"));
  EXPECT_THAT(schema(R"({"type": "number", "multipleOf": 0.5})"), HasSubstr("multipleOf"));
  EXPECT_THAT(
      refusal(JsonSchemaSpec{R"({"type": "object", "unevaluatedProperties": false})", false}),
      HasSubstr("\"unevaluatedProperties\": false"));
  EXPECT_THAT(schema(R"({"$ref": "#/$defs/none"})"), HasSubstr("points to nothing"));
  EXPECT_THAT(schema(R"({"$ref": "#"})"), HasSubstr("endless"));
  EXPECT_THAT(refusal(RegexSpec{"(?=a)b"}), HasSubstr("ookahead"));
  EXPECT_THAT(refusal(RegexSpec{"(a"}), HasSubstr("parenthesis"));
  EXPECT_THAT(refusal(EbnfSpec{"root ::= missing"}), HasSubstr("missing"));
  EXPECT_THAT(refusal(EbnfSpec{"other ::= \"a\""}), HasSubstr("root"));
  EXPECT_THAT(refusal(EbnfSpec{"root ::= root"}), HasSubstr("endless"));
  EXPECT_THAT(refusal(EbnfSpec{"root ::= \"\""}), HasSubstr("empty answer"));
  EXPECT_THAT(refusal(StructuralTagSpec{R"({"type": "structural_tag"})"}), HasSubstr("format"));
}

JsonSchemaSpec endless() { return {endless_schema()}; }

TEST_F(CompilerTest, CompilationStopsAtItsTimeAndMemoryLimits) {
  const JsonSchemaSpec spec = endless();
  GrammarCompiler short_of_time(byte_vocabulary(), {.limits = {int64_t{1} << 30, 0.2}});
  EXPECT_THAT(short_of_time.compile(spec).error().message, HasSubstr("more than 0.2 seconds"));
  GrammarCompiler short_of_memory(byte_vocabulary(), {.limits = {1 << 20, 60}});
  EXPECT_THAT(short_of_memory.compile(spec).error().message, HasSubstr("more than 1 MiB"));
  EXPECT_TRUE(short_of_memory.compile(RegexSpec{"a"}).ok());
}

TEST_F(CompilerTest, TryCompileCachesQuickResults) {
  const auto quick = compiler_.try_compile(RegexSpec{"a+"});
  ASSERT_TRUE(quick && quick->ok());
  EXPECT_EQ(compiler_.compile(RegexSpec{"a+"})->get(), (*quick)->get());
  const auto refused = compiler_.try_compile(RegexSpec{"(a"});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(compiler_.stats().hits, 1);
}

TEST_F(CompilerTest, SlowCompilationIsLeftToBlockingCalls) {
  GrammarCompiler compiler(byte_vocabulary(),
                           {.limits = {int64_t{1} << 30, 0.5}, .quick_seconds = 0.05});
  EXPECT_FALSE(compiler.try_compile(endless()));
  EXPECT_FALSE(compiler.try_compile(endless()));
  EXPECT_EQ(compiler.stats().refused, 0) << "it may still be compiled";
  EXPECT_THAT(compiler.compile(endless()).error().message, HasSubstr("more than 0.5 seconds"));
  const auto known = compiler.try_compile(endless());
  ASSERT_TRUE(known);
  EXPECT_THAT(known->error().message, HasSubstr("more than 0.5 seconds"));
}

TEST_F(CompilerTest, QuickCompilationDoesNotWaitForASlowOne) {
  GrammarCompiler compiler(byte_vocabulary(), {.limits = {int64_t{4} << 30, 2}});
  std::atomic<bool> begun = false, over = false;
  std::thread slow([&] {
    begun = true;
    EXPECT_FALSE(compiler.compile(endless()).ok());
    over = true;
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until the thread holds its lane
  const auto quick = compiler.try_compile(RegexSpec{"[a-z]{3}"});
  EXPECT_FALSE(over);
  EXPECT_TRUE(quick && quick->ok());
  slow.join();
}

TEST_F(CompilerTest, StringFormatsYieldValidJson) {
  const auto of_format = [](const std::string& format) {
    return JsonSchemaSpec{R"({"type": "string", "format": ")" + format + "\"}"};
  };
  const std::map<std::string, std::string> examples = {
      {"date", "2026-02-28"},
      {"time", "23:59:60Z"},
      {"date-time", "2026-02-28T01:02:03.5+01:00"},
      {"duration", "P3DT4H"},
      {"email", "a.b@c.de"},
      {"hostname", "a.b-c.de"},
      {"ipv4", "127.0.0.1"},
      {"ipv6", "::1"},
      {"uri", "http://a.de/b?c#d"},
      {"uri-reference", "../b#d"},
      {"uri-template", "/b/{c}"},
      {"uuid", "01234567-89ab-cdef-0123-456789ABCDEF"}};
  for (const auto& [format, example] : examples) {
    EXPECT_TRUE(has(of_format(format), '"' + example + '"')) << format;
    EXPECT_FALSE(has(of_format(format), "\" \\t\"")) << format;
  }
  EXPECT_FALSE(has(of_format("email"), R"("\"\a\"@c.de")"));  // \a is not JSON
  EXPECT_TRUE(has(of_format("colour"), "\" \\t\""));          // unknown format: any string
  for (const char* format : {"json-pointer", "relative-json-pointer"})
    EXPECT_THAT(refusal(of_format(format)), HasSubstr("\"format\" that is not supported"));
  EXPECT_THAT(refusal(JsonSchemaSpec{R"({"type": "string", "format": "date", "pattern": "2$"})"}),
              HasSubstr("\"pattern\" together with \"format\""));
  EXPECT_THAT(refusal(JsonSchemaSpec{R"({"type": "string", "format": "date", "maxLength": 2})"}),
              HasSubstr("cannot be applied in full"));
}

TEST_F(CompilerTest, ErrorsAreCached) {
  GrammarCompiler compiler(byte_vocabulary(), {.refusals = 2, .limits = {int64_t{1} << 30, 0.1}});
  const RegexSpec wrong{"(a"}, slow{"((a{90}){100}b?){100}"};
  const auto message = [&](const GrammarSpec& spec) {
    const auto made = compiler.compile(spec);
    return made.ok() ? std::string() : made.error().message;
  };
  const std::string first = message(slow);
  EXPECT_NE(first, "");
  EXPECT_EQ(message(slow), first);
  EXPECT_EQ(compiler.stats().refused, 1);
  EXPECT_EQ(compiler.stats().hits, 1);
  EXPECT_NE(message(wrong), "");
  EXPECT_NE(message(JsonSchemaSpec{"{"}), "");  // the third error evicts the first
  EXPECT_EQ(compiler.stats().refusals, 2);
  EXPECT_EQ(message(slow), first);
  EXPECT_EQ(compiler.stats().refused, 4);
  EXPECT_EQ(message(RegexSpec{"a"}), "");
  EXPECT_EQ(compiler.stats().entries, 1);
}

TEST_F(CompilerTest, EqualSpecsAreCompiledOnce) {
  const auto first = compiler_.compile(RegexSpec{"a+"}), again = compiler_.compile(RegexSpec{"a+"});
  EXPECT_EQ(first->get(), again->get());
  EXPECT_NE(first->get(), compiler_.compile(ChoiceSpec{{"a+"}})->get());
  EXPECT_EQ(compiler_.stats().compiled, 2);
  EXPECT_EQ(compiler_.stats().hits, 1);
}

TEST_F(CompilerTest, CacheEvictsLeastRecentlyUsed) {
  const size_t one = (*compiler_.compile(RegexSpec{"[a-z]{5}0"}))->bytes();
  GrammarCompiler small(byte_vocabulary(), {.cache_bytes = 3 * one + one / 2});
  const auto spec = [](int i) { return RegexSpec{"[a-z]{5}" + std::to_string(i)}; };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(small.compile(spec(i)).ok());
  ASSERT_TRUE(small.compile(spec(0)).ok());
  ASSERT_TRUE(small.compile(spec(3)).ok());
  EXPECT_EQ(small.stats().entries, 3);
  EXPECT_LE(small.stats().bytes, 3 * one + one / 2);
  ASSERT_TRUE(small.compile(spec(0)).ok());
  EXPECT_EQ(small.stats().hits, 2);
  ASSERT_TRUE(small.compile(spec(1)).ok());
  EXPECT_EQ(small.stats().compiled, 5);
}

}  // namespace
}  // namespace valora::grammar
