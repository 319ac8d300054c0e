#include "base/files/write_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "base/files/file.h"
#include "base/files/folder_lock.h"
#include "base/tensors/safetensors.h"
#include "base/tensors/safetensors_writer.h"

namespace valora {
namespace {

namespace fs = std::filesystem;

class WriteFileTest : public ::testing::Test {
 protected:
  WriteFileTest()
      : dir_(fs::path(::testing::TempDir()) /
             ("write_file_" + std::to_string(::getpid()) +
              ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  ~WriteFileTest() override { fs::remove_all(dir_); }
  std::string path(const std::string& name) const { return (dir_ / name).string(); }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(dir_), {}));
  }

  fs::path dir_;
};

TEST_F(WriteFileTest, ReplacesFileAndLeavesNoTemporary) {
  ASSERT_TRUE(write_file(path("a"), std::string_view("old")).ok());
  ASSERT_TRUE(write_file(path("a"), std::string_view("new text")).ok());
  EXPECT_EQ(*read_file(path("a"), 100), "new text");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(WriteFileTest, ErrorNamesUnwritablePath) {
  const Status status = write_file(path("missing/a"), std::string_view("text"));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message,
              ::testing::HasSubstr(path("missing/a") + " cannot be written: No such file"));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(WriteFileTest, ReplacesWholeFolder) {
  const auto fill = [](const std::string& name) {
    return [name](const std::string& staged) {
      return write_file(staged + "/" + name, std::string_view("x"));
    };
  };
  ASSERT_TRUE(write_folder(path("dir"), fill("one")).ok());
  ASSERT_TRUE(write_folder(path("dir"), fill("two")).ok());
  EXPECT_FALSE(file_exists(path("dir/one")));
  EXPECT_TRUE(file_exists(path("dir/two")));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(WriteFileTest, FailedFolderKeepsOldOne) {
  ASSERT_TRUE(write_folder(path("dir"), [](const std::string& staged) {
                return write_file(staged + "/one", std::string_view("x"));
              }).ok());
  const Status status = write_folder(path("dir"), [](const std::string& staged) -> Status {
    VALORA_CHECK(write_file(staged + "/two", std::string_view("x")));
    return invalid("no more");
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "no more");
  EXPECT_TRUE(file_exists(path("dir/one")));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(WriteFileTest, FolderLockIsExclusive) {
  auto first = FolderLock::take(dir_.string());
  ASSERT_TRUE(first.ok());
  const auto second = FolderLock::take(dir_.string());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  {
    const FolderLock moved = std::move(*first);
  }
  EXPECT_TRUE(FolderLock::take(dir_.string()).ok());
}

std::span<const uint8_t> bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)};
}

TEST_F(WriteFileTest, SafetensorsRoundTrip) {
  const std::vector<float> wide{1, 2, 3, 4, 5, 6};
  const std::vector<uint8_t> narrow{9, 8, 7};
  ASSERT_TRUE(write_safetensors(path("t"),
                                {{"b", DType::kU8, {3}, narrow},
                                 {"z", DType::kF32, {2, 3}, bytes_of(wide)},
                                 {"empty", DType::kF32, {0, 4}, {}}},
                                {{"format", "pt"}})
                  .ok());
  const auto file = SafeTensors::read(path("t"), 1 << 20);
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_EQ((*file)->tensors().size(), 3u);
  const TensorView* z = (*file)->find("z");
  EXPECT_EQ(z->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(std::equal(z->bytes.begin(), z->bytes.end(), bytes_of(wide).begin()));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(z->bytes.data()) % 4,
            reinterpret_cast<uintptr_t>((*file)->bytes().data()) % 4);
  const TensorView* b = (*file)->find("b");
  EXPECT_TRUE(std::equal(b->bytes.begin(), b->bytes.end(), narrow.begin()));
}

TEST_F(WriteFileTest, RefusesTensorWithWrongByteCount) {
  const std::vector<float> values{1, 2};
  const Status status = write_safetensors(path("t"), {{"a", DType::kF32, {3}, bytes_of(values)}});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message,
              ::testing::HasSubstr("the tensor a has 8 bytes, but its shape needs 12"));
  EXPECT_EQ(entries(), 0u);
}

}  // namespace
}  // namespace valora
