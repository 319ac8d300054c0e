#include "base/files/input_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/testing/temp_dir.h"

namespace valora {
namespace {

namespace fs = std::filesystem;

class InputFolderTest : public ::testing::Test {
 protected:
  InputFolderTest() {
    for (const char* folder : {"root", "root/a", "root/blobs", "outside"})
      fs::create_directory(dir_.file(folder));
    dir_.write("root/a/x", "inside");
    dir_.write("root/blobs/1", "blob");
    dir_.write("outside/x", "outside");
  }

  // The content of a file; empty on error.
  std::string read(const std::string& folder, const std::string& name) const {
    const auto opened = InputFolder::open({dir_.file(folder), dir_.file("root")});
    if (!opened.ok()) return {};
    const auto text = opened->text(name, 100);
    return text.ok() ? *text : "";
  }
  void link(const std::string& target, const std::string& name) const {
    fs::create_symlink(target, dir_.file(name));
  }

  testing::TempDir dir_;
};

TEST_F(InputFolderTest, ReadsTheFilesOfAFolder) {
  const auto folder = InputFolder::open(dir_.file("root/a"));
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(*folder->text("x", 6), "inside");
  EXPECT_EQ(folder->text("x", 5).error().code, ErrorCode::kPayloadTooLarge);
  EXPECT_EQ(folder->text("y", 5).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(folder->text("y", 5).error().message, dir_.file("root/a/y") + " does not exist");
  EXPECT_TRUE(folder->has("x"));
  EXPECT_FALSE(folder->has("y"));
  EXPECT_EQ(InputFolder::open(dir_.file("root/a/x")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(InputFolder::open(dir_.file("none")).error().code, ErrorCode::kNotFound);
  ASSERT_EQ(::mkfifo(dir_.file("root/a/pipe").c_str(), 0600), 0);
  EXPECT_EQ(folder->text("pipe", 5).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(InputFolderTest, FollowsLinksWithinRoot) {
  // As in download caches: files in one folder, links to them in another.
  fs::create_directories(dir_.file("root/snapshots/1"));
  link("../../blobs/1", "root/snapshots/1/x");
  link(dir_.file("root/blobs/1"), "root/snapshots/1/absolute");
  link("a", "root/newest");
  EXPECT_EQ(read("root/snapshots/1", "x"), "blob");
  EXPECT_EQ(read("root/snapshots/1", "absolute"), "blob");
  EXPECT_EQ(read("root/newest", "x"), "inside");
  EXPECT_EQ(read("root/./snapshots/../a", "x"), "inside");
  link("root", "door");  // the root's own path
  EXPECT_EQ(*InputFolder::open({dir_.file("root/a"), dir_.file("door")})->text("x", 9), "inside");
  EXPECT_EQ(*InputFolder::open({dir_.file("door/a"), dir_.file("root")})->text("x", 9), "inside");
  EXPECT_TRUE(InputFolder::open({dir_.file("root"), dir_.file("root")}).ok());
}

TEST_F(InputFolderTest, RefusesPathsOutsideRoot) {
  fs::create_directory(dir_.file("rooted"));
  dir_.write("rooted/x", "outside");
  link("../outside", "root/folder");
  link("../../outside/x", "root/a/file");
  link(dir_.file("outside/x"), "root/a/absolute");
  link("nowhere", "root/a/nothing");
  for (const char* folder : {"outside", "rooted", "root/folder", "root/../outside", "."})
    EXPECT_EQ(InputFolder::open({dir_.file(folder), dir_.file("root")}).error().code,
              ErrorCode::kNotFound)
        << folder;
  const auto folder = InputFolder::open({dir_.file("root/a"), dir_.file("root")});
  for (const char* name : {"file", "absolute", "nothing"}) {
    EXPECT_TRUE(folder->has(name));
    EXPECT_EQ(
        folder->text(name, 100).error().message,
        dir_.file("root/a/") + name + " is a dangling link, or leads out of the allowed folder");
  }
  // Without a root, links lead anywhere.
  EXPECT_EQ(*InputFolder::open(dir_.file("root/a"))->text("file", 100), "outside");
}

TEST_F(InputFolderTest, RefusesPathsWithZeroByte) {
  const std::string zero(1, '\0');
  EXPECT_FALSE(InputFolder::open(dir_.file("root/a") + zero + "b").ok());
  EXPECT_FALSE(InputFolder::open({dir_.file("root/a") + zero, dir_.file("root")}).ok());
  EXPECT_FALSE(read_file(dir_.file("root/a/x") + zero + ".png", 100).ok());
}

TEST_F(InputFolderTest, OpenFolderSurvivesRename) {
  const auto folder = InputFolder::open({dir_.file("root/a"), dir_.file("root")});
  link("../blobs/1", "root/a/link");
  fs::rename(dir_.file("root/a"), dir_.file("root/b"));
  fs::create_directory_symlink(dir_.file("outside"), dir_.file("root/a"));
  EXPECT_EQ(*folder->text("x", 100), "inside");
  EXPECT_EQ(*folder->text("link", 100), "blob");
}

// Another thread keeps swapping a folder, and a file in it, with links that lead outside.
TEST_F(InputFolderTest, RacingLinkSwapNeverLeavesRoot) {
  link("../outside", "root/folder");
  link("../../outside/x", "root/a/y");
  // Relative to the folder's descriptor: a swap by path could move the outside file into the
  // folder.
  const int a = ::open(dir_.file("root/a").c_str(), O_PATH | O_DIRECTORY),
            root = ::open(dir_.file("root").c_str(), O_PATH | O_DIRECTORY);
  std::atomic<bool> done = false;
  const auto swap = [&](int folder, const char* one, const char* other) {
    while (!done) ::renameat2(folder, one, folder, other, RENAME_EXCHANGE);
  };
  std::thread folders(swap, root, "a", "folder"), files(swap, a, "x", "y");
  int inside = 0, outside = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = read("root/a", "x");
    inside += text == "inside" ? 1 : 0;
    outside += text == "outside" ? 1 : 0;
  }
  done = true;
  folders.join();
  files.join();
  ::close(a);
  ::close(root);
  EXPECT_GT(inside, 0);
  EXPECT_EQ(outside, 0);
}

}  // namespace
}  // namespace valora
