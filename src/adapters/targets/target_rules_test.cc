#include "adapters/targets/target_rules.h"

#include <gtest/gtest.h>

namespace valora::adapters {
namespace {

Regex regex(const std::string& pattern) { return *Regex::compile(pattern, "test"); }

bool hits(const TargetRules& rules, const std::string& name) {
  RegexBudget budget;
  return *rules.targets_name(name, budget);
}

bool pattern_hits(const std::string& key, const std::string& name) {
  RegexBudget budget;
  return *NamePattern::compile(key, "test")->matches(name, budget);
}

TEST(TargetRules, ListsMatchWholeNamesAndDottedSuffixes) {
  TargetRules rules;
  rules.targets.names = {"q_proj", "mlp.up_proj", "lm_head"};
  EXPECT_TRUE(hits(rules, "a.0.q_proj"));
  EXPECT_TRUE(hits(rules, "q_proj"));
  EXPECT_TRUE(hits(rules, "a.mlp.up_proj"));
  EXPECT_TRUE(hits(rules, "lm_head"));
  EXPECT_FALSE(hits(rules, "a.faq_proj"));
  EXPECT_FALSE(hits(rules, "a.xmlp.up_proj"));
  EXPECT_FALSE(hits(rules, "a.q_proj.x"));
}

TEST(TargetRules, RegularExpressionsMatchTheWholeName) {
  TargetRules rules;
  rules.targets.regex = regex(".*q_proj|a.k");
  EXPECT_TRUE(hits(rules, "a.0.q_proj"));
  EXPECT_TRUE(hits(rules, "a.k"));
  EXPECT_FALSE(hits(rules, "a.k.b"));
}

TEST(TargetRules, ExclusionsAndSavedModulesTakePrecedence) {
  TargetRules rules;
  rules.all_linear = true;
  rules.excluded.names = {"k_proj"};
  rules.excluded.regex = regex("b\\..*");
  rules.saved.push_back(regex("(^|.*\\.)score($|\\..*)"));
  EXPECT_TRUE(hits(rules, "a.q_proj"));
  EXPECT_FALSE(hits(rules, "a.k_proj"));
  EXPECT_FALSE(hits(rules, "b.q_proj"));
  EXPECT_FALSE(hits(rules, "score"));
  EXPECT_FALSE(hits(rules, "a.score.dense"));
  EXPECT_TRUE(hits(rules, "a.score2"));
}

TEST(TargetRules, LayersLimitSuffixesButNotWholeNames) {
  TargetRules rules;
  rules.targets.names = {"q_proj", "m.layers.5.q_proj", "head"};
  rules.layers = std::set<int64_t>{1, 10};
  rules.layer_patterns.push_back(regex(".*\\.layers\\.(\\d+)\\."));
  EXPECT_TRUE(hits(rules, "m.layers.1.q_proj"));
  EXPECT_TRUE(hits(rules, "m.layers.10.a.q_proj"));
  EXPECT_FALSE(hits(rules, "m.layers.2.q_proj"));
  EXPECT_TRUE(hits(rules, "m.layers.5.q_proj"));
  EXPECT_FALSE(hits(rules, "m.blocks.1.q_proj"));
  EXPECT_TRUE(hits(rules, "head"));
  EXPECT_FALSE(hits(rules, "m.head"));
}

TEST(TargetRules, LayerPatternsThatCaptureNoIndexAreRefused) {
  TargetRules rules;
  rules.targets.names = {"q_proj"};
  rules.layers = std::set<int64_t>{1};
  RegexBudget budget;
  for (const char* pattern : {".*\\.(layers)\\.(\\d+)\\.", ".*\\.layers|x\\.(\\d+)\\."}) {
    rules.layer_patterns = {regex(pattern)};
    EXPECT_FALSE(rules.targets_name("m.layers.1.q_proj", budget).ok()) << pattern;
  }
}

TEST(NamePattern, PlainKeysMatchLikePeftsRegex) {
  for (const char* key :
       {"q_proj", "layers.1.q_proj", "layers.1.q.proj", "^m.layers.1.q_proj", "^layers.1.q_proj",
        "proj", "m.layers.1.q_proj", "x.m.layers.1.q_proj", ""}) {
    for (const char* name : {"m.layers.1.q_proj", "m.layers.11.q_proj", "q_proj", "aq_proj",
                             "layers.1.q_proj", "a.", ""}) {
      RegexBudget budget;
      const auto expected =
          regex("(.*\\.)?(" + std::string(key) + ")$").match(name, budget)->has_value();
      EXPECT_EQ(pattern_hits(key, name), expected) << key << " on " << name;
    }
  }
}

TEST(NamePattern, KeysWithMetacharactersAreRegexes) {
  EXPECT_TRUE(pattern_hits(R"(layers\.[12]\.\w+)", "m.layers.2.q_proj"));
  EXPECT_FALSE(pattern_hits(R"(layers\.[12]\.\w+)", "m.layers.3.q_proj"));
  EXPECT_TRUE(pattern_hits("a|b", "m.b"));
  EXPECT_FALSE(pattern_hits("a|b", "mb"));
}

TEST(TargetRules, ScaleFollowsAlphaRankAndRslora) {
  TargetRules rules;
  rules.alpha = 16;
  ASSERT_TRUE(rules.ranks.keys.add("k_proj", "rank_pattern").ok());
  rules.ranks.values = {4};
  ASSERT_TRUE(rules.alphas.keys.add("k_proj", "alpha_pattern").ok());
  rules.alphas.values = {2.0};
  RegexBudget budget;
  EXPECT_EQ(*rules.rank_of("a.q_proj", budget), 8);
  EXPECT_EQ(*rules.rank_of("a.k_proj", budget), 4);
  EXPECT_EQ(*rules.scale_of("a.q_proj", 8, budget), 2.0);
  EXPECT_EQ(*rules.scale_of("a.k_proj", 4, budget), 0.5);
  rules.rslora = true;
  EXPECT_EQ(*rules.scale_of("a.k_proj", 4, budget), 1.0);
}

}  // namespace
}  // namespace valora::adapters
