// Quantiles of samples.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace valora {

// Interpolates linearly between the two nearest samples, numpy's default. `sorted`: ascending, not
// empty. share: 0 to 1.
inline double quantile(std::span<const double> sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

// samples: not empty, in any order.
inline double median(std::vector<double> samples) {
  std::ranges::sort(samples);
  return quantile(samples, 0.5);
}

}  // namespace valora
