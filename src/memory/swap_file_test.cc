#include "memory/swap_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "base/testing/temp_dir.h"

namespace valora::memory {
namespace {

TEST(SwapFile, StoresBlocksInUnnamedFile) {
  const valora::testing::TempDir folder;
  auto swap = SwapFile::create(folder.path(), 3, 1000);
  ASSERT_TRUE(swap.ok()) << swap.error().message;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  std::vector<std::byte> block(1000), read(1000);
  for (const BlockId id : {2, 0, 1}) {
    std::fill(block.begin(), block.end(), static_cast<std::byte>(id + 1));
    ASSERT_TRUE((*swap)->write(id, block).ok());
  }
  for (const BlockId id : {0, 1, 2}) {
    ASSERT_TRUE((*swap)->read(id, read).ok());
    EXPECT_EQ(read[0], static_cast<std::byte>(id + 1));
    EXPECT_EQ(read[999], static_cast<std::byte>(id + 1));
  }
  EXPECT_FALSE((*swap)->read(3, read).ok());  // beyond the end of the file
}

TEST(SwapFile, RefusesBadFolderOrSize) {
  const auto nowhere = SwapFile::create("/no/such/folder", 1, 1000);
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().param, "swap_dir");
  const valora::testing::TempDir folder;
  const auto huge = SwapFile::create(folder.path(), 1 << 30, size_t{1} << 30);
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().param, "swap_space");
  EXPECT_NE(huge.error().message.find("1152921504606846976 bytes"), std::string::npos);
}

}  // namespace
}  // namespace valora::memory
