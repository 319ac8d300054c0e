#include "lab/trace/timeline.h"

#include <algorithm>

namespace valora::bench {

void Timeline::add(double end, const StepRecord& step) {
  const double begin = std::max(0.0, end - step.seconds);
  const auto index = static_cast<size_t>(begin / width_);
  if (index >= intervals_.size()) intervals_.resize(index + 1);
  TimelineInterval& interval = intervals_[index];
  ++interval.steps;
  interval.tokens += step.tokens;
  const auto mode = static_cast<size_t>(
      std::ranges::find_if(kModes, [&](const char* mode) { return mode == step.mode; }) -
      kModes.begin());
  if (mode < kModes.size()) interval.seconds[mode] += step.seconds;
  interval.switches += step.switched ? 1 : 0;
  interval.merges += step.merged ? 1 : 0;
  interval.weights_seconds += step.weights_seconds;
  if (step.weights_seconds > 0) writes_.push_back({end, step.weights_seconds});
}

TimelineInterval Timeline::total() const {
  TimelineInterval sum;
  for (const TimelineInterval& interval : intervals_) {
    sum.steps += interval.steps;
    sum.tokens += interval.tokens;
    for (size_t i = 0; i < kModes.size(); ++i) sum.seconds[i] += interval.seconds[i];
    sum.switches += interval.switches;
    sum.merges += interval.merges;
    sum.weights_seconds += interval.weights_seconds;
  }
  return sum;
}

}  // namespace valora::bench
