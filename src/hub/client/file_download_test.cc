#include "hub/client/file_download.h"

#include <gmock/gmock.h>

#include "base/files/file.h"
#include "base/testing/temp_dir.h"

namespace valora::hub {
namespace {

using valora::testing::TempDir;

constexpr uint64_t kSize = 2 * kPieceBytes + 100;

class FileDownloadTest : public ::testing::Test {
 protected:
  FileDownload open(const std::string& before = "") {
    dir_.write("x.incomplete", before);
    return {{"x", kSize, digest_},
            std::move(BlobWriter::open(dir_.file("x.incomplete"), kSize, digest_)).value()};
  }
  uint64_t on_disk() const { return InputFile::open(dir_.file("x.incomplete"))->size(); }

  const TempDir dir_;
  const std::string digest_ = std::string(64, 'a');
};

TEST_F(FileDownloadTest, OnlyTheBeginningIsOnDisk) {
  FileDownload download = open();
  Piece* const first = download.next_piece();
  Piece* const second = download.next_piece();
  Piece* const third = download.next_piece();
  EXPECT_EQ(download.next_piece(), nullptr);
  EXPECT_EQ(third->range.end, kSize);
  const std::string bytes(kPieceBytes, 'b');
  ASSERT_TRUE(download.take(*third, bytes.substr(0, 100)).ok());
  ASSERT_TRUE(download.take(*second, bytes).ok());
  ASSERT_TRUE(download.end_of(*second).ok());
  EXPECT_EQ(on_disk(), 0u);
  EXPECT_EQ(download.loaded(), kPieceBytes + 100);
  ASSERT_TRUE(download.take(*first, bytes.substr(0, 10)).ok());
  EXPECT_EQ(on_disk(), 10u);
  EXPECT_FALSE(download.take(*first, bytes).ok());  // more than asked for
  ASSERT_TRUE(download.take(*first, bytes.substr(10)).ok());
  EXPECT_FALSE(download.whole());
  ASSERT_TRUE(download.end_of(*first).ok());
  EXPECT_EQ(on_disk(), kSize);
  EXPECT_TRUE(download.whole());
}

TEST_F(FileDownloadTest, PieceThatBecomesTheFirstKeepsItsBytes) {
  FileDownload download = open();
  Piece* const first = download.next_piece();
  Piece* const second = download.next_piece();
  ASSERT_TRUE(download.take(*second, "abc").ok());
  ASSERT_TRUE(download.take(*first, std::string(kPieceBytes, 'b')).ok());
  ASSERT_TRUE(download.end_of(*first).ok());
  ASSERT_TRUE(download.take(*second, "def").ok());
  EXPECT_EQ(on_disk(), kPieceBytes + 6);
  EXPECT_EQ(download.loaded(), kPieceBytes + 6);
  const std::string text = read_file(dir_.file("x.incomplete"), kSize).value();
  EXPECT_EQ(text.substr(kPieceBytes), "abcdef");
}

// A piece whose last bytes have come may still be in use by its connection.
TEST_F(FileDownloadTest, PieceLivesUntilItHasEnded) {
  FileDownload download = open();
  Piece* const first = download.next_piece();
  Piece* const second = download.next_piece();
  const std::string bytes(kPieceBytes, 'b');
  ASSERT_TRUE(download.take(*second, bytes).ok());
  ASSERT_TRUE(download.take(*first, bytes).ok());
  ASSERT_TRUE(download.end_of(*first).ok());
  EXPECT_EQ(on_disk(), 2 * kPieceBytes);
  EXPECT_EQ(download.pieces(), 1u);
  EXPECT_TRUE(second->complete());
  ASSERT_TRUE(download.end_of(*second).ok());
  EXPECT_EQ(download.pieces(), 0u);
}

TEST_F(FileDownloadTest, GoesOnBehindWhatIsThere) {
  FileDownload download = open("12345");
  EXPECT_TRUE(download.ranged());
  EXPECT_EQ(download.next_piece()->range.begin, 5u);
  ASSERT_TRUE(download.start_over(false).ok());
  const Piece* const whole = download.next_piece();
  EXPECT_EQ(whole->range.begin, 0u);
  EXPECT_EQ(whole->range.end, kSize);
  EXPECT_EQ(on_disk(), 0u);
}

}  // namespace
}  // namespace valora::hub
