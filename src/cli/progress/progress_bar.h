// Progress of a long command on stderr: a bar on a terminal, otherwise one line per minute, for log
// files.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "base/clock.h"

namespace valora::cli {

class ProgressBar {
 public:
  enum class Unit : uint8_t { kCount, kBytes };  // bytes are shown with their rate
  explicit ProgressBar(std::FILE* out = stderr, const Clock& clock = real_clock(),
                       Unit unit = Unit::kCount);
  ~ProgressBar();  // removes the bar
  void clear();    // removes the bar until the next show()
  // note: the current activity, one line without a line break. A smaller `done` than before, or
  // another `total`, starts a new phase, for which the remaining time is estimated afresh.
  void show(int64_t done, int64_t total, const std::string& note);

 private:
  std::string amount(int64_t done, int64_t total, const char* between) const;
  std::string rate(TimePoint now) const;
  std::string time_left(TimePoint now) const;

  std::FILE* const out_;
  const Clock& clock_;
  const Unit unit_;
  const bool terminal_;
  bool shown_ = false;
  TimePoint told_;     // when the last line was printed
  TimePoint began_;    // start of the current phase
  int64_t first_ = 0;  // `done` at its start
  int64_t done_ = 0, total_ = 0;
};

// "40 s", "12 min", "3 h 20 min"
std::string short_duration(double seconds);

}  // namespace valora::cli
