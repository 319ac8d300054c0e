#include "base/files/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/testing/temp_dir.h"

namespace valora {
namespace {

TEST(FileTest, ReadsWholeFilesUpToTheLimit) {
  testing::TempDir dir;
  const std::string path = dir.write("a", std::string("x\0y", 3));
  EXPECT_EQ(*read_file(path, 3), std::string("x\0y", 3));
  EXPECT_EQ(read_file(path, 2).error().code, ErrorCode::kPayloadTooLarge);
  EXPECT_EQ(*read_file(dir.write("empty", ""), 0), "");
}

TEST(FileTest, RefusesNonRegularFiles) {
  testing::TempDir dir;
  EXPECT_EQ(read_file(dir.file("none"), 10).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read_file(dir.path(), 10).error().code, ErrorCode::kInvalidArgument);
  // Without O_NONBLOCK, opening a pipe that has no writer would block.
  ASSERT_EQ(::mkfifo(dir.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_file(dir.file("pipe"), 10).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(MappedFile::open(dir.file("pipe")).error().code, ErrorCode::kInvalidArgument);
}

TEST(FileTest, MapsFiles) {
  testing::TempDir dir;
  const auto file = MappedFile::open(dir.write("a", "abc"));
  ASSERT_TRUE(file.ok());
  const auto bytes = file.value()->bytes();
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "abc");
  EXPECT_FALSE(MappedFile::open(dir.write("empty", "")).ok());
  EXPECT_TRUE(file_exists(dir.file("a")));
  EXPECT_FALSE(file_exists(dir.file("b")));
}

TEST(FileDeathTest, ShrunkMapEndsProcessNamingFile) {
  testing::TempDir dir;
  const std::string path = dir.write("short", std::string(10'000, 'x'));
  const auto other = MappedFile::open(dir.write("other", "abc"));
  const auto read_cut = [&] {
    const auto file = MappedFile::open(path);
    std::filesystem::resize_file(path, 0);
    const volatile uint8_t* const bytes = file.value()->bytes().data();
    std::exit(bytes[5000] == 'x' ? 2 : 3);
  };
  EXPECT_EXIT(read_cut(), ::testing::ExitedWithCode(1), path + " became shorter");
}

TEST(FileDeathTest, OtherBusErrorsReachPreviousHandler) {
  testing::TempDir dir;
  const auto file = MappedFile::open(dir.write("a", "abc"));
  EXPECT_EXIT(std::raise(SIGBUS), [](int status) { return status != 0; }, "");
}

TEST(FileTest, ReadsParts) {
  testing::TempDir dir;
  const auto file = InputFile::open(dir.write("a", "abcdef"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 6u);
  std::string part(3, '.');
  EXPECT_EQ(*file->read(2, part), 3u);
  EXPECT_EQ(part, "cde");
  EXPECT_EQ(*file->read(5, part), 1u);
  EXPECT_EQ(part[0], 'f');
  EXPECT_EQ(*file->read(9, part), 0u);
}

}  // namespace
}  // namespace valora
