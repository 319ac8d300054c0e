#include "adapters/targets/pattern_table.h"

#include <gtest/gtest.h>

#include <array>

namespace valora::adapters {
namespace {

PatternTable table_of(const std::vector<std::string>& keys) {
  PatternTable table;
  for (const std::string& key : keys) EXPECT_TRUE(table.add(key, "test").ok()) << key;
  return table;
}

std::optional<size_t> first(const PatternTable& table, std::string_view name) {
  RegexBudget budget;
  return table.first_match(name, budget).value();
}

TEST(PatternTable, FirstMatchingKeyCounts) {
  const auto table =
      table_of({"a.1.k_proj", "x\\d+", "k_proj", "^q_proj", "1.k_proj", "q_proj|a.1.k_pro."});
  EXPECT_EQ(first(table, "m.a.1.k_proj"), 0u);
  EXPECT_EQ(first(table, "a_1_k_proj"), 0u) << "dots match any character";
  EXPECT_EQ(first(table, "m.x7"), 1u);
  EXPECT_EQ(first(table, "m.b.1.k_proj"), 2u);
  EXPECT_EQ(first(table, "q_proj"), 3u);
  EXPECT_EQ(first(table, "m.q_proj"), 5u);
  EXPECT_EQ(first(table, "m.a.1.k_prop"), 5u);
  EXPECT_EQ(first(table, "m.faq_proj"), std::nullopt);
  EXPECT_EQ(first(table_of({}), "a"), std::nullopt);
}

// What comparing with each key finds.
TEST(PatternTable, FindsWhatAScanFinds) {
  const std::vector<std::string> keys = {"b.c",  "a..c", "^a.b.c", "c",     "^c", "a.b.c",
                                         "[ab]", "..",   "b_c",    "^b.c$", ".",  "b"};
  const auto table = table_of(keys);
  constexpr std::array kParts = {'a', 'b', 'c', '.', '_', '\n'};
  for (size_t length = 1, count = kParts.size(); length <= 5; ++length, count *= kParts.size())
    for (size_t i = 0; i < count; ++i) {
      std::string name;
      for (size_t rest = i; name.size() < length; rest /= kParts.size())
        name += kParts[rest % kParts.size()];
      std::optional<size_t> expected;
      for (size_t k = 0; k < keys.size() && !expected; ++k) {
        RegexBudget budget;
        if (*NamePattern::compile(keys[k], "test")->matches(name, budget)) expected = k;
      }
      ASSERT_EQ(first(table, name), expected) << name;
    }
}

TEST(PatternTable, KeysOfALargeMixtureHaveFewShapes) {
  PatternTable table;
  std::vector<std::string> names;
  for (int layer = 0; layer < 48; ++layer)
    for (int expert = 0; expert < 128; ++expert)
      for (const char* part : {"gate_proj", "up_proj", "down_proj"})
        names.push_back("model.layers." + std::to_string(layer) + ".mlp.experts." +
                        std::to_string(expert) + "." + part);
  for (const std::string& name : names) ASSERT_TRUE(table.add(name, "test").ok());
  EXPECT_EQ(table.shapes(), 12u) << "2 lengths of layers, 3 of experts, 2 of parts";
  for (size_t i = 0; i < names.size(); i += 97) EXPECT_EQ(first(table, names[i]), i);
}

}  // namespace
}  // namespace valora::adapters
