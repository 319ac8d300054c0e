#include "memory/swap_file.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
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
}

// The descriptor of the swap file below `folder`, as another program finds it.
int open_swap_file_below(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    const std::string target = std::filesystem::read_symlink(entry.path(), closed).string();
    if (target.starts_with(folder + "/valora-swap-")) return open(entry.path().c_str(), O_RDWR);
  }
  return -1;
}

// A block that was damaged behind the server's back fails to be read, others are whole, and the
// block can be written again.
void expect_damage_is_found(const std::function<bool(int file)>& damage, bool others_whole) {
  const valora::testing::TempDir folder;
  auto swap = SwapFile::create(folder.path(), 3, 1000);
  ASSERT_TRUE(swap.ok()) << swap.error().message;
  std::vector<std::byte> block(1000, std::byte{7}), read(1000);
  for (const BlockId id : {0, 1, 2}) ASSERT_TRUE((*swap)->write(id, block).ok());
  const int file = open_swap_file_below(folder.path());
  ASSERT_GE(file, 0);
  ASSERT_TRUE(damage(file));
  EXPECT_FALSE((*swap)->read(1, read).ok());
  EXPECT_EQ((*swap)->read(0, read).ok(), others_whole);
  EXPECT_EQ((*swap)->read(2, read).ok(), others_whole);
  ASSERT_TRUE((*swap)->write(1, block).ok());
  EXPECT_TRUE((*swap)->read(1, read).ok());
  EXPECT_EQ(read, block);
  close(file);
}

TEST(SwapFile, FindsOverwrittenBytes) {
  expect_damage_is_found(
      [](int file) {
        const char other = 8;
        return pwrite(file, &other, 1, 1999) == 1;
      },
      /*others_whole=*/true);
}

// The end of the file is later moved behind the lost blocks, so that they read as zeros.
TEST(SwapFile, FindsTruncation) {
  expect_damage_is_found([](int file) { return ftruncate(file, 0) == 0; }, false);
  expect_damage_is_found(
      [](int file) { return ftruncate(file, 0) == 0 && ftruncate(file, 3000) == 0; }, false);
}

TEST(SwapFile, RefusesBlocksThatWereNotWritten) {
  const valora::testing::TempDir folder;
  auto swap = SwapFile::create(folder.path(), 2, 1000);
  ASSERT_TRUE(swap.ok()) << swap.error().message;
  std::vector<std::byte> read(1000);
  EXPECT_FALSE((*swap)->read(0, read).ok());
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
