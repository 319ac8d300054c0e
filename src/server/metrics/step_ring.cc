#include "server/metrics/step_ring.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <string_view>

namespace valora::server {

void StepRing::add(const StepRecord& record) noexcept {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const std::lock_guard lock(mutex_);
  ++count_;
  steps_[count_ % kKept] = {count_, now.count(), record, now.count() - record.seconds};
}

std::vector<StepRing::Step> StepRing::after(uint64_t number) const {
  std::vector<Step> out;
  const std::lock_guard lock(mutex_);
  const uint64_t oldest = count_ < kKept ? 0 : count_ - kKept;
  for (uint64_t next = std::max(number, oldest) + 1; next <= count_; ++next)
    out.push_back(steps_[next % kKept]);
  return out;
}

uint64_t StepRing::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

namespace {

StepRing::Step joined_step(std::span<const StepRing::Step> steps) {
  StepRing::Step out = steps.front();
  std::map<std::string_view, double> by_mode = {{out.record.mode, out.record.seconds}};
  for (const StepRing::Step& step : steps.subspan(1)) {
    const StepRecord& more = step.record;
    out.number = step.number;
    out.ended = step.ended;
    out.steps += step.steps;
    out.record.tokens += more.tokens;
    out.record.prefill_tokens += more.prefill_tokens;
    out.record.seconds += more.seconds;
    out.record.weights_seconds += more.weights_seconds;
    out.record.sequences = std::max(out.record.sequences, more.sequences);
    out.record.adapters = std::max(out.record.adapters, more.adapters);
    out.record.switched |= more.switched;
    out.record.merged |= more.merged;
    by_mode[more.mode] += more.seconds;
  }
  out.record.mode =
      std::ranges::max_element(by_mode, {}, [](const auto& mode) { return mode.second; })->first;
  return out;
}

}  // namespace

std::vector<StepRing::Step> joined(const std::vector<StepRing::Step>& steps, size_t most) {
  if (steps.size() <= most) return steps;
  const size_t each = (steps.size() + most - 1) / most;
  std::vector<StepRing::Step> out;
  for (size_t at = 0; at < steps.size();) {
    size_t end = at + 1;
    while (end < steps.size() && end - at < each &&
           steps[end].began - steps[end - 1].ended <= kPause)
      ++end;
    out.push_back(joined_step(std::span(steps).subspan(at, end - at)));
    at = end;
  }
  if (out.size() > 2 * most) out.erase(out.begin(), out.end() - static_cast<ptrdiff_t>(2 * most));
  return out;
}

}  // namespace valora::server
