#include "base/files/folder_snapshot.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/testing/temp_dir.h"

namespace valora {
namespace {

using testing::TempDir;

class FolderSnapshotTest : public ::testing::Test {
 protected:
  FolderSnapshotTest() {
    dir_.write("a.json", "{}");
    dir_.write("b.bin", "bytes");
  }
  InputFolder folder() const { return std::move(InputFolder::open(dir_.path())).value(); }
  // The message of check() after `change`; empty: it noticed nothing.
  template <typename Change>
  std::string after(Change&& change) const {
    const InputFolder open = folder();
    const auto before = FolderSnapshot::take(open, {"a.json", "b.bin", "c"}, true);
    change();
    const Status status = before.check(open);
    if (status.ok()) return {};
    EXPECT_EQ(status.error().code, ErrorCode::kConflict);
    return status.error().message;
  }

  TempDir dir_;
};

TEST_F(FolderSnapshotTest, NoticesEveryKindOfChangeByName) {
  EXPECT_EQ(after([] {}), "");
  EXPECT_EQ(after([&] { dir_.write("other", "x"); }), "");
  EXPECT_NE(after([&] { dir_.write("b.bin", "bytEs"); }).find("/b.bin was changed while"), -1UL);
  EXPECT_NE(after([&] { dir_.write("a.json", "[]"); }).find("/a.json was changed while"), -1UL);
  EXPECT_NE(after([&] { dir_.write("c", ""); }).find("/c was changed while"), -1UL);
  EXPECT_NE(after([&] { std::filesystem::remove(dir_.file("c")); }).find("/c "), -1UL);
  EXPECT_NE(after([&] {
              dir_.write("new", "bytes");
              std::filesystem::rename(dir_.file("new"), dir_.file("b.bin"));
            }).find("/b.bin "),
            -1UL);
}

// As rsync does after it wrote.
TEST_F(FolderSnapshotTest, TimesThatAreSetBackHideNothing) {
  EXPECT_NE(after([&] {
              struct stat info{};
              ASSERT_EQ(stat(dir_.file("b.bin").c_str(), &info), 0);
              dir_.write("b.bin", "bytEs");
              const timespec times[] = {info.st_atim, info.st_mtim};
              ASSERT_EQ(utimensat(AT_FDCWD, dir_.file("b.bin").c_str(), times, 0), 0);
            }),
            "");
}

TEST_F(FolderSnapshotTest, RestsOnceNothingWasWrittenForSoLong) {
  const auto now = FolderSnapshot::take(folder(), {"a.json", "b.bin", "none"});
  EXPECT_FALSE(now.at_rest_for(std::chrono::hours(1)));
  EXPECT_TRUE(now.at_rest_for(std::chrono::nanoseconds(0)));
}

}  // namespace
}  // namespace valora
