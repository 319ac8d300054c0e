#include "base/log/stderr_sink.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "base/log/log.h"

namespace valora {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// A log into a pipe of 8 KiB.
class StderrSinkTest : public ::testing::Test {
 protected:
  StderrSinkTest() {
    std::signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(::pipe(ends_.data()), 0);
    ::fcntl(ends_[1], F_SETPIPE_SZ, 8192);
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    sink_ = std::make_shared<StderrSink>(ends_[1]);
    logger_ = std::make_unique<spdlog::logger>("test", sink_);
    logger_->set_formatter(log_formatter());
    sink_->wait_for_nobody();
  }
  ~StderrSinkTest() override {
    close_reader();
    ::close(ends_[1]);
  }
  std::string read() const {
    std::string text(1 << 16, '\0');
    const ssize_t bytes = ::read(ends_[0], text.data(), text.size());
    text.resize(static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
    return text;
  }
  void close_reader() {
    if (ends_[0] >= 0) ::close(std::exchange(ends_[0], -1));
  }

  std::array<int, 2> ends_{-1, -1};
  std::shared_ptr<StderrSink> sink_;
  std::unique_ptr<spdlog::logger> logger_;
};

TEST_F(StderrSinkTest, WritesALineForEachMessage) {
  logger_->info("one\ntwo");
  logger_->warn("three");
  const std::string text = read();
  EXPECT_THAT(text, HasSubstr(" info one\\ntwo\n"));
  EXPECT_THAT(text, EndsWith(" warning three\n"));
  EXPECT_EQ(sink_->lost(), 0u);
}

TEST_F(StderrSinkTest, FullPipeLosesLinesWithoutWaiting) {
  const std::string long_text(300, 'x');
  for (int i = 0; i < 100; ++i) logger_->info("{} {}", i, long_text);
  const uint64_t lost = sink_->lost();
  EXPECT_GT(lost, 80u);
  const std::string before = read();
  EXPECT_THAT(before, HasSubstr(" info 0 xxx"));
  logger_->info("again");
  const std::string after = read();
  EXPECT_THAT(after, HasSubstr(" warning " + std::to_string(lost) + " lines of the log were lost"));
  EXPECT_THAT(after, EndsWith(" info again\n"));
  logger_->info("and again");
  EXPECT_THAT(read(), ::testing::Not(HasSubstr("lost")));
  EXPECT_EQ(sink_->lost(), lost);
}

TEST_F(StderrSinkTest, LeftReaderLosesLinesAlone) {
  close_reader();
  for (int i = 0; i < 10; ++i) EXPECT_NO_THROW(logger_->info("nobody reads this"));
  EXPECT_EQ(sink_->lost(), 10u);
}

TEST_F(StderrSinkTest, FullDiskLosesLinesAlone) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  for (const bool waits : {true, false}) {
    const auto sink = std::make_shared<StderrSink>(full);
    if (!waits) sink->wait_for_nobody();
    spdlog::logger logger("test", sink);
    for (int i = 0; i < 3; ++i) EXPECT_NO_THROW(logger.info("x"));
    EXPECT_EQ(sink->lost(), 3u);
  }
  ::close(full);
}

}  // namespace
}  // namespace valora
