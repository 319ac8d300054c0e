#include "server/metrics/step_ring.h"

#include <algorithm>
#include <chrono>

namespace valora::server {

void StepRing::add(const StepRecord& record) noexcept {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::lock_guard lock(mutex_);
  ++count_;
  steps_[count_ % kKept] = {count_, std::chrono::duration<double>(now).count(), record};
}

std::vector<StepRing::Step> StepRing::after(uint64_t number) const {
  std::vector<Step> out;
  out.reserve(kKept);
  const std::lock_guard lock(mutex_);
  const uint64_t oldest = count_ < kKept ? 0 : count_ - kKept;
  for (uint64_t next = std::max(number, oldest) + 1; next <= count_; ++next)
    out.push_back(steps_[next % kKept]);
  return out;
}

}  // namespace valora::server
