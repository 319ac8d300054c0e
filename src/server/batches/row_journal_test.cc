#include "server/batches/row_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/files/file.h"
#include "base/files/write_file.h"
#include "base/testing/temp_dir.h"

namespace valora::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JournalTest : public ::testing::Test {
 protected:
  // The rows found, and what opening says.
  Status open(RowEnd end = line_end) {
    rows_.clear();
    const auto journal = RowJournal::open(
        path_,
        [&](std::string_view row, size_t) -> Status {
          if (row.starts_with("bad")) return invalid("row is bad");
          rows_.emplace_back(row);
          return {};
        },
        end);
    if (!journal.ok()) return journal.error();
    return {};
  }
  std::string content() const { return *read_file(path_, 1 << 20); }

  valora::testing::TempDir dir_;
  const std::string path_ = dir_.file("rows");
  std::vector<std::string> rows_;
};

TEST_F(JournalTest, AppendedRowsAreFoundAgain) {
  {
    auto journal = RowJournal::open(path_, [](std::string_view, size_t) { return Status(); });
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE(journal->append("one\ntwo\n").ok());
    ASSERT_TRUE(journal->append("three\n").ok());
    EXPECT_EQ(journal->size(), 14u);
  }
  ASSERT_TRUE(open().ok());
  EXPECT_THAT(rows_, ElementsAre("one", "two", "three"));
}

TEST_F(JournalTest, AnyCutLeavesTheWholeRowsAlone) {
  const std::string whole = "first\nsecond\nthird\n";
  for (size_t size = 0; size <= whole.size(); ++size) {
    ASSERT_TRUE(write_file(path_, whole.substr(0, size)).ok());
    ASSERT_TRUE(open().ok());
    const size_t end = whole.substr(0, size).rfind('\n');
    EXPECT_EQ(content(), end == whole.npos ? "" : whole.substr(0, end + 1)) << size;
    EXPECT_EQ(rows_.size(), static_cast<size_t>(std::ranges::count(whole.substr(0, size), '\n')));
  }
}

TEST_F(JournalTest, LastRowThatIsNoneIsCutAndAnotherIsRefused) {
  ASSERT_TRUE(write_file(path_, std::string_view("one\nbad\n")).ok());
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(content(), "one\n");
  ASSERT_TRUE(write_file(path_, std::string_view("one\nbad\ntwo\n")).ok());
  EXPECT_EQ(open().error().message, "row is bad");
  EXPECT_EQ(content(), "one\nbad\ntwo\n");
}

TEST_F(JournalTest, QuotedLineBreaksDoNotEndRowsOfCsv) {
  ASSERT_TRUE(write_file(path_, std::string_view("a,\"x\ny\"\nb,\"torn\n")).ok());
  ASSERT_TRUE(open(csv_row_end).ok());
  EXPECT_THAT(rows_, ElementsAre("a,\"x\ny\""));
  EXPECT_EQ(content(), "a,\"x\ny\"\n");
}

TEST_F(JournalTest, RowsLongerThanAReadAreWhole) {
  const std::string row((size_t{3} << 20) + 7, 'x');
  ASSERT_TRUE(write_file(path_, row + "\nnext\n").ok());
  ASSERT_TRUE(open().ok());
  ASSERT_EQ(rows_.size(), 2u);
  EXPECT_EQ(rows_[0].size(), row.size());
}

TEST_F(JournalTest, SecondWriterIsRefused) {
  const auto journal = RowJournal::open(path_, [](std::string_view, size_t) { return Status(); });
  ASSERT_TRUE(journal.ok());
  EXPECT_EQ(open().error().code, ErrorCode::kConflict);
}

// A disk of `room` bytes, of which only what is synced survives the end of power.
class SmallDisk final : public JournalFile {
 public:
  explicit SmallDisk(std::string& bytes, size_t& room) : bytes_(bytes), room_(room) {}
  int append(std::string_view bytes) override {
    const size_t fits = std::min(bytes.size(), room_ - std::min(room_, bytes_.size()));
    bytes_ += bytes.substr(0, fits);
    return fits == bytes.size() ? 0 : ENOSPC;
  }
  int sync() override { return std::exchange(sync_fault, 0); }
  int truncate(uint64_t size) override {
    if (truncate_fault != 0) return std::exchange(truncate_fault, 0);
    bytes_.resize(size);
    return 0;
  }
  int sync_fault = 0, truncate_fault = 0;

 private:
  std::string& bytes_;
  size_t& room_;
};

TEST(JournalOnAFullDisk, AFailedAppendLeavesNothingAndCanBeRepeated) {
  std::string bytes;
  size_t room = 10;
  RowJournal journal("out.jsonl", std::make_unique<SmallDisk>(bytes, room), 0);
  ASSERT_TRUE(journal.append("one\n").ok());
  const Status full = journal.append("two\nthree\n");
  EXPECT_EQ(full.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(full.error().message, HasSubstr("out.jsonl cannot be written: No space left"));
  EXPECT_EQ(bytes, "one\n");
  room = 100;
  ASSERT_TRUE(journal.append("two\nthree\n").ok());
  EXPECT_EQ(bytes, "one\ntwo\nthree\n");
}

TEST(JournalOnAFullDisk, RowsThatWereNotSyncedAreWrittenAgain) {
  std::string bytes;
  size_t room = 100;
  auto file = std::make_unique<SmallDisk>(bytes, room);
  SmallDisk& disk = *file;
  RowJournal journal("out.jsonl", std::move(file), 0);
  disk.sync_fault = EIO;
  EXPECT_FALSE(journal.append("one\n").ok());
  ASSERT_TRUE(journal.append("one\n").ok());
  EXPECT_EQ(bytes, "one\n");
}

TEST(JournalOnAFullDisk, NothingIsAppendedBehindATornRow) {
  std::string bytes;
  size_t room = 6;
  auto file = std::make_unique<SmallDisk>(bytes, room);
  SmallDisk& disk = *file;
  RowJournal journal("out.jsonl", std::move(file), 0);
  ASSERT_TRUE(journal.append("one\n").ok());
  disk.truncate_fault = EIO;
  EXPECT_FALSE(journal.append("two\n").ok());
  EXPECT_EQ(bytes, "one\ntw");  // it could not be cut off
  room = 100;
  ASSERT_TRUE(journal.append("two\n").ok());
  EXPECT_EQ(bytes, "one\ntwo\n");
}

}  // namespace
}  // namespace valora::server
