#include "adapters/targets/module_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::adapters {
namespace {

using ::testing::ElementsAre;

ModuleTable table() {
  return ModuleTable(
      {{"model.language_model.layers.0.q", 4, 4}, {"model.visual.merger", 4, 4}, {"lm_head", 4, 9}},
      {{"model.", "model.language_model."},
       {"language_model.model.", "model.language_model."},
       {"visual.", "model.visual."}},
      4);
}

TEST(ModuleTable, FindsCanonicalAndAliasedNames) {
  const ModuleTable modules = table();
  EXPECT_EQ(modules.find("model.language_model.layers.0.q"), 0);
  EXPECT_EQ(modules.find("model.layers.0.q"), 0);
  EXPECT_EQ(modules.find("language_model.model.layers.0.q"), 0);
  EXPECT_EQ(modules.find("visual.merger"), 1);
  EXPECT_EQ(modules.find("model.visual.merger"),
            1);  // although "model." is also an alias
  EXPECT_EQ(modules.find("lm_head"), 2);
  EXPECT_EQ(modules.find("model.lm_head"), std::nullopt);
  EXPECT_EQ(modules.find("layers.0.q"), std::nullopt);
  EXPECT_EQ(modules.find(""), std::nullopt);
  EXPECT_EQ(modules.hidden_size(), 4);
}

TEST(ModuleTable, CanonicalNameIsListedFirst) {
  EXPECT_THAT(table().names(0), ElementsAre("model.language_model.layers.0.q",
                                            "language_model.model.layers.0.q", "model.layers.0.q"));
  EXPECT_THAT(table().names(1), ElementsAre("model.visual.merger", "visual.merger"));
  EXPECT_THAT(table().names(2), ElementsAre("lm_head"));
}

TEST(ModuleTable, EmptyTableFindsNothing) { EXPECT_EQ(ModuleTable().find("x"), std::nullopt); }

}  // namespace
}  // namespace valora::adapters
