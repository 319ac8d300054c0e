// Detects an engine whose requests make no progress.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace valora::scheduler {

// What was done since the start: numbers that only grow.
struct Progress {
  uint64_t steps = 0;   // that ran, parts of steps, and requests that ended with an error
  uint64_t grants = 0;  // claims of waiting requests that became ready
  uint64_t moves = 0;   // copies between the tiers of memory that ended

  bool operator==(const Progress&) const = default;
};

// Requests stand still if nothing was done for the timeout, or if for kWithoutSteps timeouts only
// memory was moved and granted: copies may go round for ever. Then only a step shows that work goes
// on, since claims that were given back are granted again.
class ProgressWatch {
 public:
  static constexpr int kWithoutSteps = 5;
  enum class Change : uint8_t { kNone, kStalled, kResumed };

  ProgressWatch(Duration timeout, TimePoint now)
      : timeout_(timeout), done_at_(now), stepped_at_(now) {}

  // Call it several times within the timeout. busy: there are requests that wait or run.
  Change look(const Progress& now, bool busy, TimePoint at);
  bool stalled() const { return stalled_; }
  Duration timeout() const { return timeout_; }
  // The time of the last look at which there was a step, or no request.
  TimePoint stepped_at() const { return stepped_at_; }

 private:
  const Duration timeout_;
  Progress last_;
  TimePoint done_at_, stepped_at_;
  bool stalled_ = false;
};

}  // namespace valora::scheduler
