#include "cli/progress/progress_bar.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace valora::cli {
namespace {

struct LogFile {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::tmpfile(), std::fclose};
  std::string text() const {
    std::rewind(file.get());
    std::array<char, 4096> buffer{};
    return {buffer.data(), std::fread(buffer.data(), 1, buffer.size(), file.get())};
  }
};

TEST(ProgressBar, LogFileGetsOneLinePerMinute) {
  SimulatedClock clock;
  const LogFile log;
  ProgressBar bar(log.file.get(), clock);
  for (int second = 1; second <= 150; ++second) {
    clock.advance(from_seconds(1));
    bar.show(second, 600, "training");
  }
  // The estimate counts from the first call, at second 1.
  EXPECT_EQ(log.text(),
            "training: 60 of 600, 9 min left\n"
            "training: 120 of 600, 8 min left\n");
}

TEST(ProgressBar, ShortWorkPrintsNothing) {
  SimulatedClock clock;
  const LogFile log;
  {
    ProgressBar bar(log.file.get(), clock);
    bar.show(1, 2, "asking");
    clock.advance(from_seconds(59));
    bar.show(2, 2, "asking");
  }
  EXPECT_EQ(log.text(), "");
}

TEST(ProgressBar, TimeLeftIsEstimatedPerPhase) {
  SimulatedClock clock;
  const LogFile log;
  ProgressBar bar(log.file.get(), clock);
  bar.show(0, 100, "reading");
  clock.advance(from_seconds(50));
  bar.show(100, 100, "reading");
  bar.show(40, 100, "training");  // resumes from a checkpoint
  clock.advance(from_seconds(10));
  bar.show(50, 100, "training");
  EXPECT_EQ(log.text(), "training: 50 of 100, 50 s left\n");
}

TEST(ProgressBar, BytesAreShownWithTheirRate) {
  SimulatedClock clock;
  const LogFile log;
  ProgressBar bar(log.file.get(), clock, ProgressBar::Unit::kBytes);
  bar.show(1 << 20, 100 << 20, "model.safetensors");
  clock.advance(from_seconds(60));
  bar.show(61 << 20, 100 << 20, "model.safetensors");
  EXPECT_EQ(log.text(), "model.safetensors: 61.0 MiB of 100.0 MiB, 1.0 MiB/s, 39 s left\n");
}

TEST(ShortDuration, HasTwoUnitsAtMost) {
  EXPECT_EQ(short_duration(0.2), "1 s");
  EXPECT_EQ(short_duration(59), "59 s");
  EXPECT_EQ(short_duration(89), "1 min");
  EXPECT_EQ(short_duration(91), "2 min");
  EXPECT_EQ(short_duration(12'000), "3 h 20 min");
}

}  // namespace
}  // namespace valora::cli
