#include "yaml/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::yaml {
namespace {

using ::testing::StartsWith;

std::string error(const std::string& text, const Limits& limits = {}) {
  const auto tree = parse(text, "f", limits);
  return tree.ok() ? "no error" : tree.error().message;
}

TEST(YamlTree, ReportsLinesKeysAndTexts) {
  const auto tree = parse("a: 1\nb:\n  - x\n  - \"2\"\nc:\n", "f");
  ASSERT_TRUE(tree.ok()) << tree.error().message;
  ASSERT_EQ(tree->children.size(), 3u);
  const Node &a = tree->children[0], &b = tree->children[1], &c = tree->children[2];
  EXPECT_EQ(a.key, "a");
  EXPECT_EQ(a.text, "1");
  EXPECT_FALSE(a.quoted);
  EXPECT_EQ(b.key_line, 2);
  ASSERT_EQ(b.kind, Node::Kind::kList);
  EXPECT_EQ(b.children[1].line, 4);
  EXPECT_TRUE(b.children[1].quoted);
  EXPECT_EQ(c.kind, Node::Kind::kNull);
}

TEST(YamlTree, ErrorsNameLine) {
  EXPECT_THAT(error("a:\n  - b: [c\n"), StartsWith("f:"));
  EXPECT_THAT(error("a:\n\n  - b: \"\\q\"\n"), StartsWith("f:3: this is not YAML: "));
  EXPECT_EQ(error("a:\n- b: 1\n  b: 2\n"), "f:3: the key \"b\" appears twice");
  EXPECT_EQ(error("a: 1\n---\na: 2\n"), "f:2: a second document begins; a file has one");
  EXPECT_EQ(error("? [a]\n: 1\n"), "f:1: a key must be text");
}

TEST(YamlTree, NonUtf8IsRefused) {
  EXPECT_EQ(error("a: \u00e9\u20ac\U0001F600\U0010FFFF"), "no error");
  for (const char* bytes :
       {"\xC0\xAF", "\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5", "\xE2\x82"})
    EXPECT_EQ(error("a:\n" + std::string(bytes)), "f:2: this is not UTF-8");
  // UTF-32 with a number above U+10FFFF, which yaml-cpp would turn into other bytes.
  EXPECT_EQ(error(std::string("\0\0\0\1plic", 8)), "f:1: this is not UTF-8");
}

// The "billion laughs" attack: each level repeats the previous one ten times.
TEST(YamlTree, UnboundedInputIsRefused) {
  EXPECT_EQ(error("a: &a [x, x]\nb: &b [*a, *a]\n"),
            "f:1: anchors and aliases are not supported; write the value out");
  EXPECT_EQ(error("a: 1\nb: *a\n"), "f:2: this is not YAML: the referenced anchor is not defined");
  EXPECT_EQ(error("a: !!binary aGk=\n"), "f:1: tags are not supported");
  EXPECT_EQ(error("a:\n  " + std::string(100, '[') + std::string(100, ']')),
            "f:2: nested deeper than 16 levels");
  EXPECT_THAT(error(std::string(100'000, '[')), StartsWith("f:1: "));
  EXPECT_EQ(error("[0,\n0]", {.max_nodes = 3}), "no error");
  EXPECT_EQ(error("[0,\n0]", {.max_nodes = 2}), "f:2: more than 2 values");
  const auto large = parse("1234", "f", {.max_bytes = 3});
  EXPECT_EQ(large.error().code, ErrorCode::kPayloadTooLarge);
}

}  // namespace
}  // namespace valora::yaml
