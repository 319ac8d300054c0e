// How many durations fell below each of some bounds.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace valora {

struct DurationCounts {
  // Upper bounds, in seconds and inclusive; the last bucket has none.
  static constexpr std::array<double, 14> kBounds = {.001, .0025, .005, .01, .025, .05, .1,
                                                     .25,  .5,    1,    2.5, 5,    10,  30};

  std::array<uint64_t, kBounds.size() + 1> counts{};  // by bucket
  double seconds = 0;                                 // their sum

  void add(double duration) noexcept {
    const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), duration);
    ++counts[static_cast<size_t>(bound - kBounds.begin())];
    seconds += duration;
  }
};

}  // namespace valora
