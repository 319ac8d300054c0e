// Detects an engine whose requests make no progress.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace valora::scheduler {

// Work done since the start: counters that only grow.
struct Progress {
  uint64_t steps = 0;   // steps and parts of steps run, and requests that ended with an error
  uint64_t grants = 0;  // claims of waiting requests that became ready
  uint64_t moves = 0;   // completed copies between the tiers of memory

  bool operator==(const Progress&) const = default;
};

// Requests are stalled if nothing was done for the timeout, or if memory was only moved and granted
// for kWithoutSteps timeouts: copies may go round in circles. After that only a step counts as
// progress, because returned claims may be granted again.
class ProgressWatch {
 public:
  static constexpr int kWithoutSteps = 5;
  enum class Change : uint8_t { kNone, kStalled, kResumed };

  ProgressWatch(Duration timeout, TimePoint now)
      : timeout_(timeout), done_at_(now), stepped_at_(now) {}

  // Call it several times per timeout. busy: requests are waiting or running.
  Change look(const Progress& now, bool busy, TimePoint at);
  bool stalled() const { return stalled_; }
  Duration timeout() const { return timeout_; }
  // The time of the last look that saw a new step or no requests.
  TimePoint stepped_at() const { return stepped_at_; }

 private:
  const Duration timeout_;
  Progress last_;
  TimePoint done_at_, stepped_at_;
  bool stalled_ = false;
};

}  // namespace valora::scheduler
