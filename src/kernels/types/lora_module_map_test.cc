#include "kernels/types/lora_module_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace valora::kernels {
namespace {

TEST(LoraModuleMap, FindsEntriesInAnyOrderOfAdding) {
  const int modules[] = {190, 3, 64, 63, 5, 128, 127, 0};
  LoraModuleMap map(191);
  for (const int module : modules) map.add(module).rank = module + 1;
  map.add(64).in = 7;  // known: the same entry
  EXPECT_EQ(map.entries().size(), std::size(modules));
  EXPECT_EQ(map.find(64)->in, 7);
  const LoraModuleMap moved = std::move(map);
  EXPECT_EQ(moved.model_modules(), 191u);
  size_t found = 0;
  for (int module = -1; module < 191; ++module) {
    const LoraModule* entry = moved.find(module);
    if (!std::ranges::count(modules, module)) {
      EXPECT_EQ(entry, nullptr) << module;
      continue;
    }
    ++found;
    ASSERT_NE(entry, nullptr) << module;
    EXPECT_EQ(entry->rank, module + 1);
    EXPECT_EQ(touched_module(moved.view(), module), entry);
  }
  EXPECT_EQ(found, std::size(modules));
}

}  // namespace
}  // namespace valora::kernels
