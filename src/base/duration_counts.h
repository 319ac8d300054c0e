// A histogram of durations with fixed buckets.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace valora {

struct DurationCounts {
  // Upper bounds in seconds, inclusive; the last bucket has no bound.
  static constexpr std::array<double, 14> kBounds = {.001, .0025, .005, .01, .025, .05, .1,
                                                     .25,  .5,    1,    2.5, 5,    10,  30};

  std::array<uint64_t, kBounds.size() + 1> counts{};  // per bucket
  double seconds = 0;                                 // sum of all durations

  void add(double duration) noexcept {
    const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), duration);
    ++counts[static_cast<size_t>(bound - kBounds.begin())];
    seconds += duration;
  }
};

}  // namespace valora
