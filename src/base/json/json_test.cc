#include "base/json/json.h"

#include <gtest/gtest.h>

#include <new>

#include "base/testing/allocation_faults.h"
#include "base/testing/temp_dir.h"

namespace valora {
namespace {

template <typename T>
Result<std::optional<T>> field(const std::string& text) {
  return optional_field<T>(Json::parse(text), "x");
}

TEST(JsonTest, RefusesDepthOverTheLimitBeforeParsing) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  const auto refused = parse_json(deep, "the body");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "the body nests deeper than 64 levels");
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']'), "x").ok());
  // Brackets inside strings are text, also after escaped quotes.
  EXPECT_TRUE(parse_json(R"({"a":"[[[\"[[["})", "x", {.max_depth = 1}).ok());
}

TEST(JsonTest, RefusesTooManyBytesOrValues) {
  EXPECT_EQ(parse_json("[1,2,3]", "x", {.max_bytes = 6}).error().code, ErrorCode::kPayloadTooLarge);
  EXPECT_TRUE(parse_json("[1,2,3]", "x", {.max_bytes = 7}).ok());
  EXPECT_FALSE(parse_json("[1,2,3]", "x", {.max_values = 3}).ok());
  EXPECT_TRUE(parse_json("[1,2,3]", "x", {.max_values = 4}).ok());
}

TEST(JsonTest, RefusesDuplicateKeysOnlyOnRequest) {
  const std::string text = R"({"a":{"b":1,"b":2},"c":{"b":1}})";
  ASSERT_TRUE(parse_json(text, "x").ok());
  const auto refused = parse_json(text, "x", {.unique_keys = true});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "x has the key \"b\" twice");
  EXPECT_TRUE(parse_json(R"({"a":{"b":1},"b":{"a":1}})", "x", {.unique_keys = true}).ok());
}

TEST(JsonTest, ErrorsAreShortAndValidUtf8) {
  // The library's message quotes the whole offending string, including invalid bytes.
  const auto refused = parse_json("{\"a\":\"" + std::string(10000, 'y') + "\xff\"}", "the body");
  ASSERT_FALSE(refused.ok());
  EXPECT_LT(refused.error().message.size(), 400u);
  EXPECT_EQ(refused.error().message.find('\xff'), std::string::npos);
  EXPECT_EQ(refused.error().message.rfind("the body is not valid JSON: parse error at ", 0), 0u);
  EXPECT_FALSE(parse_json("", "x").ok());
  EXPECT_FALSE(parse_json("{\"a\":1} x", "x").ok());
  EXPECT_FALSE(parse_json("{\"a\":NaN}", "x").ok());
  EXPECT_FALSE(parse_json("[1e999]", "x").ok());
}

TEST(JsonTest, ReadsFieldsOfTheRightTypeOnly) {
  EXPECT_EQ(**field<int32_t>(R"({"x":7})"), 7);
  EXPECT_EQ(**field<int32_t>(R"({"x":7.0})"), 7);
  EXPECT_EQ(**field<bool>(R"({"x":true})"), true);
  EXPECT_EQ(**field<double>(R"({"x":2})"), 2.0);
  EXPECT_EQ(**field<std::string>(R"({"x":"é"})"), "é");
  EXPECT_FALSE(field<int32_t>(R"({"x":null})")->has_value());
  EXPECT_FALSE(field<int32_t>(R"({"y":1})")->has_value());
  for (const char* wrong : {R"({"x":"7"})", R"({"x":7.5})", R"({"x":true})", R"({"x":[7]})",
                            R"({"x":2147483648})", R"({"x":-2147483649})", R"({"x":1e300})"}) {
    const auto refused = field<int32_t>(wrong);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(refused.error().param, "x");
  }
  EXPECT_FALSE(field<int64_t>(R"({"x":9223372036854775808})").ok());
  EXPECT_EQ(**field<int64_t>(R"({"x":-9223372036854775808})"), INT64_MIN);
  EXPECT_FALSE(field<bool>(R"({"x":1})").ok());
  EXPECT_FALSE(field<std::string>(R"({"x":1})").ok());
  EXPECT_FALSE(field<double>(R"({"x":"1"})").ok());
  EXPECT_FALSE(field<double>("[1]").ok());
}

TEST(JsonTest, RequiredAndDefaultedFields) {
  const Json object = Json::parse(R"({"a":3})");
  EXPECT_EQ(*field_or<int32_t>(object, "a", 5), 3);
  EXPECT_EQ(*field_or<int32_t>(object, "b", 5), 5);
  EXPECT_EQ(*required_field<int32_t>(object, "a"), 3);
  EXPECT_EQ(required_field<int32_t>(object, "b").error().message, "\"b\" is missing");
}

TEST(JsonTest, FileErrorsNamePath) {
  testing::TempDir dir;
  EXPECT_EQ(*read_json_file(dir.write("a.json", "[1]")), Json::parse("[1]"));
  EXPECT_EQ(read_json_file(dir.file("none.json")).error().code, ErrorCode::kNotFound);
  EXPECT_NE(
      read_json_file(dir.write("b.json", "[1")).error().message.find("b.json is not valid JSON"),
      std::string::npos);
}

TEST(JsonTest, DestroyingTreeDoesNotAllocate) {
  std::string deep = "1";
  for (int i = 0; i < 60; ++i) deep = i % 2 ? "[" + deep + ",\"text\"]" : R"({"a":)" + deep + "}";
  std::string text = "[" + deep;
  for (int i = 0; i < 50; ++i)
    text += R"(,{"a long key that takes memory":[1,2.5,null,"a long text that takes memory"]})";
  text += "]";
  Json tree = parse_json(text, "x").value(), copy = tree;
  nlohmann::ordered_json ordered = nlohmann::ordered_json::parse(text);
  {
    const testing::AllocationFault fault(0, true);
    tree = nullptr;
    copy.clear();
    ordered = nullptr;
    EXPECT_FALSE(fault.struck());
  }
  EXPECT_TRUE(tree.is_null());
}

TEST(JsonTest, ComparingWithLiteralDoesNotAllocate) {
  const Json text = "a text of some length, which takes memory", number = 1, none;
  const OrderedJson ordered = "a text of some length, which takes memory";
  const testing::AllocationFault fault(0, true);
  EXPECT_TRUE(text == "a text of some length, which takes memory");
  EXPECT_TRUE(text != "another text of some length, with memory");
  EXPECT_TRUE(ordered == "a text of some length, which takes memory");
  EXPECT_FALSE(ordered != "a text of some length, which takes memory");
  EXPECT_TRUE(number != "a text of some length, which takes memory");
  EXPECT_FALSE(none == "");
  EXPECT_FALSE(fault.struck());
}

TEST(JsonTest, ReportsGitLfsPointer) {
  const testing::TempDir dir;
  const std::string path =
      dir.write("tokenizer.json", "version https://git-lfs.github.com/spec/v1\noid sha256:1\n");
  const auto json = read_json_file(path);
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(json.error().message, path + " is a Git LFS pointer, not the file: run git lfs pull");
}

TEST(JsonTest, ParseThrowsWhenOutOfMemory) {
  std::string text = "[";
  for (int i = 0; i < 20; ++i)
    text += R"({"key":[1,[2,{"a":"some text of some length, and more"}]]},)";
  text += "0]";
  const size_t values = parse_json(text, "x").value().size();
  for (const bool lasting : {false, true})
    for (uint64_t n = 0;; ++n) {
      std::optional<Result<Json>> parsed;
      bool struck = false, thrown = false;
      {
        const testing::AllocationFault fault(n, lasting);
        try {
          parsed = parse_json(text, "x");
        } catch (const std::bad_alloc&) {
          thrown = true;
        }
        struck = fault.struck();
      }
      ASSERT_EQ(thrown, struck) << n;
      if (struck) continue;
      EXPECT_EQ(parsed->value().size(), values);
      EXPECT_GT(n, 100u);
      break;
    }
}

}  // namespace
}  // namespace valora
