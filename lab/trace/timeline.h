// The steps of a run over time: modes, and merges and switches of weights (VaLoRA's figure 20).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "api/stats.h"

namespace valora::bench {

inline constexpr std::array kModes{"unmerged", "merged", "mixture"};

// The steps that began within one time interval.
struct TimelineInterval {
  int steps = 0;
  int64_t tokens = 0;
  std::array<double, kModes.size()> seconds{};  // spent in steps, by mode in the order of kModes
  int switches = 0, merges = 0;
  double weights_seconds = 0;  // part of them spent on weights
};

// A step that merged an adapter or restored the base weights.
struct WeightsWritten {
  double at = 0;  // when the step ended
  double seconds = 0;
};

class Timeline {
 public:
  // width: seconds per interval, above 0.
  explicit Timeline(double width) : width_(width) {}

  // end: seconds since the start of the run.
  void add(double end, const StepRecord& step);

  double width() const { return width_; }
  const std::vector<TimelineInterval>& intervals() const { return intervals_; }
  const std::vector<WeightsWritten>& writes() const { return writes_; }
  // The sum of all intervals.
  TimelineInterval total() const;

 private:
  double width_;
  std::vector<TimelineInterval> intervals_;
  std::vector<WeightsWritten> writes_;
};

}  // namespace valora::bench
