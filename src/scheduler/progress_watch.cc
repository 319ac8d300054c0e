#include "scheduler/progress_watch.h"

#include <utility>

namespace valora::scheduler {

ProgressWatch::Change ProgressWatch::look(const Progress& now, bool busy, TimePoint at) {
  const Progress before = std::exchange(last_, now);
  if (!busy || now.steps != before.steps) {
    done_at_ = stepped_at_ = at;
    return std::exchange(stalled_, false) ? Change::kResumed : Change::kNone;
  }
  if (now != before) done_at_ = at;
  if (stalled_) return Change::kNone;
  stalled_ = at - done_at_ >= timeout_ || at - stepped_at_ >= kWithoutSteps * timeout_;
  return stalled_ ? Change::kStalled : Change::kNone;
}

}  // namespace valora::scheduler
