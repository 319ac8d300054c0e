#include "yaml/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::yaml {
namespace {

using ::testing::ElementsAre;

class YamlFields : public ::testing::Test {
 protected:
  Fields open(const std::string& text) {
    tree_ = *parse(text, file_);
    return *Fields::open(file_, tree_, "", {"a", "b"});
  }
  const std::string file_ = "f";
  Node tree_;
};

TEST_F(YamlFields, UnknownKeyErrorSuggestsNearestKey) {
  const auto error = [&](const std::string& text, const std::string& within) {
    return Fields::open(file_, *parse(text, file_), within, {"train", "name"}).error().message;
  };
  EXPECT_EQ(error("name: x\ntrian: y\n", ""),
            "f:2: unknown key \"trian\", did you mean \"train\"?");
  EXPECT_EQ(error("weather: y\n", "in."), "f:1: unknown key \"in.weather\"; known: train, name");
  EXPECT_EQ(error("[]\n", ""), "f:1: expected keys with values (train, name), not a list");
}

TEST_F(YamlFields, ReadsValuesByType) {
  const Fields fields = open("a: 7\nb: [x, \"2\"]\n");
  EXPECT_EQ(*fields.integer("a", 0, 7), 7);
  EXPECT_EQ(*fields.number("a", 0, 7), 7.0);
  EXPECT_EQ(*fields.text("a"), "7");
  EXPECT_THAT(*fields.texts("b"), ElementsAre("x", "2"));
  EXPECT_EQ(*open("b: 1\n").integer("a", 0, 7), std::nullopt);
  EXPECT_THAT(*open("a: [0.5, 2]\n").numbers("a"), ElementsAre(0.5, 2));
  EXPECT_THAT(*open("b: 1\n").numbers("a"), ElementsAre());
}

TEST_F(YamlFields, WrongValueErrorNamesLineAndKey) {
  const auto of = [](const auto& result) { return result.ok() ? "" : result.error().message; };
  EXPECT_EQ(of(open("b: 1\na: 8\n").integer("a", 0, 7)),
            "f:2: \"a\" must be an integer from 0 to 7, not \"8\"");
  EXPECT_EQ(of(open("a: nan\n").number("a", 0, 7)),
            "f:1: \"a\" must be a number from 0 to 7, not \"nan\"");
  EXPECT_EQ(of(open("a: \"1\"\n").number("a", 0, 7)),
            "f:1: \"a\" must be a number from 0 to 7, not \"1\"");
  EXPECT_EQ(of(open("a: yes\n").flag("a")), "f:1: \"a\" must be true or false, not \"yes\"");
  EXPECT_EQ(of(open("a:\n  - x\n  - x\n").texts("a")), "f:3: \"a\" has \"x\" twice");
  EXPECT_EQ(of(open("a: 5\n").numbers("a")), "f:1: \"a\" must be a list of numbers, not \"5\"");
  EXPECT_EQ(of(open("a: [1, .inf]\n").numbers("a")),
            "f:1: \"a\" must be a list of numbers; one of them is \".inf\"");
  EXPECT_EQ(of(open("b: x\n").required_text("a")), "f:1: \"a\" is missing");
}

}  // namespace
}  // namespace valora::yaml
