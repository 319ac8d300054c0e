// Counts events in a sliding time window.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/clock.h"

namespace valora::memory {

// The number of the current slot. A window covers VisitWindow::kSlots slots.
using Slot = int64_t;

class VisitWindow {
 public:
  static constexpr int kSlots = 8;

  static Slot slot_of(TimePoint time, Duration window) {
    return time.time_since_epoch() / std::max(Duration(1), window / kSlots);
  }

  void add(Slot now) {
    advance(now);
    uint16_t& count = counts_[now % kSlots];
    if (count < UINT16_MAX) ++count;
  }
  // Events in the last kSlots slots.
  uint32_t count(Slot now) const {
    uint32_t sum = 0;
    for (Slot slot = std::max(last_ - kSlots, now - kSlots) + 1; slot <= last_; ++slot)
      if (slot >= 0) sum += counts_[slot % kSlots];
    return sum;
  }

 private:
  void advance(Slot now) {
    if (now - last_ >= kSlots) counts_.fill(0);
    for (Slot slot = std::max(last_, now - kSlots) + 1; slot <= now; ++slot)
      counts_[slot % kSlots] = 0;
    last_ = std::max(last_, now);
  }

  std::array<uint16_t, kSlots> counts_{};
  Slot last_ = 0;  // slot of the last event
};

}  // namespace valora::memory
