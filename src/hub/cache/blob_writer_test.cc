#include "hub/cache/blob_writer.h"

#include <gmock/gmock.h>

#include "base/files/file.h"
#include "base/testing/temp_dir.h"
#include "hub/cache/blob_lock.h"

namespace valora::hub {
namespace {

using ::testing::HasSubstr;
using valora::testing::TempDir;

constexpr char kHello[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

TEST(BlobWriter, GoesOnFromWhatIsThere) {
  const TempDir dir;
  const std::string path = dir.write("h.incomplete", "hel");
  auto writer = BlobWriter::open(path, 5, kHello);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(writer->written(), 3u);
  EXPECT_TRUE(writer->continued());
  ASSERT_TRUE(writer->append("lo").ok());
  ASSERT_TRUE(writer->whole());
  EXPECT_TRUE(writer->finish(dir.file("h")).value());
  EXPECT_EQ(read_file(dir.file("h"), 10).value(), "hello");
  EXPECT_FALSE(file_exists(path));
}

TEST(BlobWriter, WrongHashLeavesNothing) {
  const TempDir dir;
  auto writer = BlobWriter::open(dir.file("h.incomplete"), 5, kHello);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->append("hallo").ok());
  EXPECT_FALSE(writer->finish(dir.file("h")).value());
  EXPECT_FALSE(file_exists(dir.file("h")));
  EXPECT_FALSE(file_exists(dir.file("h.incomplete")));
}

TEST(BlobWriter, FileThatIsTooLongStartsOver) {
  const TempDir dir;
  auto writer = BlobWriter::open(dir.write("h.incomplete", "hello and more"), 5, kHello);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(writer->written(), 0u);
  ASSERT_TRUE(writer->append("hello").ok());
  EXPECT_TRUE(writer->finish(dir.file("h")).value());
}

TEST(BlobWriter, ErrorNamesFileAndRemedy) {
  const TempDir dir;
  const auto writer = BlobWriter::open(dir.file("none/h.incomplete"), 5, kHello);
  ASSERT_FALSE(writer.ok());
  EXPECT_THAT(writer.error().message, HasSubstr("h.incomplete cannot be written: "));
  EXPECT_THAT(writer.error().message, HasSubstr("HF_HUB_CACHE"));
}

TEST(BlobLock, ExcludesOthersUntilItIsGone) {
  const TempDir dir;
  {
    auto first = BlobLock::try_take(dir.file("lock"));
    ASSERT_TRUE(first.ok() && *first);
    auto second = BlobLock::try_take(dir.file("lock"));
    ASSERT_TRUE(second.ok());
    EXPECT_FALSE(*second);
  }
  auto third = BlobLock::try_take(dir.file("lock"));
  EXPECT_TRUE(third.ok() && *third);
  EXPECT_FALSE(BlobLock::try_take(dir.file("none/lock")).ok());
}

}  // namespace
}  // namespace valora::hub
