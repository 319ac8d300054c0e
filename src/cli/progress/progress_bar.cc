#include "cli/progress/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

#include "base/text/human_bytes.h"

namespace valora::cli {
namespace {

constexpr int64_t kWidth = 30;
constexpr double kSecondsBetweenLines = 60;
constexpr double kSecondsToEstimate = 3;  // before the time left is first estimated

}  // namespace

std::string short_duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  const int64_t minutes = (whole + 30) / 60;
  if (minutes < 60) return fmt::format("{} min", minutes);
  return fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

ProgressBar::ProgressBar(std::FILE* out, const Clock& clock, Unit unit)
    : out_(out),
      clock_(clock),
      unit_(unit),
      terminal_(::isatty(::fileno(out)) == 1),
      told_(clock.now()),
      began_(told_) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::clear() {
  if (shown_) std::fputs("\r\033[K", out_);
  shown_ = false;
}

std::string ProgressBar::amount(int64_t done, int64_t total, const char* between) const {
  if (unit_ == Unit::kCount) return fmt::format("{}{}{}", done, between, total);
  return human_bytes(static_cast<uint64_t>(done)) + between +
         human_bytes(static_cast<uint64_t>(total));
}

std::string ProgressBar::rate(TimePoint now) const {
  const double passed = seconds(now - began_);
  if (unit_ == Unit::kCount || passed <= 0 || done_ <= first_) return "";
  const double bytes = static_cast<double>(done_ - first_) / passed;
  return ", " + human_bytes(static_cast<uint64_t>(bytes)) + "/s";
}

std::string ProgressBar::time_left(TimePoint now) const {
  const double passed = seconds(now - began_);
  const auto advanced = static_cast<double>(done_ - first_);
  if (passed < kSecondsToEstimate || advanced <= 0 || done_ >= total_) return "";
  return ", " + short_duration(passed * static_cast<double>(total_ - done_) / advanced) + " left";
}

void ProgressBar::show(int64_t done, int64_t total, const std::string& note) {
  if (total < 1) return;
  const TimePoint now = clock_.now();
  if (total != total_ || done < done_) {
    began_ = now;
    first_ = done;
  }
  done_ = done;
  total_ = total;
  if (!terminal_) {
    if (seconds(now - told_) < kSecondsBetweenLines) return;
    told_ = now;
    std::fputs(
        fmt::format("{}: {}{}{}\n", note, amount(done, total, " of "), rate(now), time_left(now))
            .c_str(),
        out_);
  } else {
    const auto filled = static_cast<size_t>(kWidth * done / total);
    const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, ' ');
    std::fputs(fmt::format("\r\033[K[{}] {}  {}{}{}", bar, amount(done, total, "/"), note,
                           rate(now), time_left(now))
                   .c_str(),
               out_);
    shown_ = true;
  }
  std::fflush(out_);
}

}  // namespace valora::cli
