#include "generator/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace valora::generator {

double cosine_rate(int64_t step, int64_t steps, int64_t warmup) {
  if (step < warmup)
    return static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, warmup));
  const double done = static_cast<double>(step - warmup) /
                      static_cast<double>(std::max<int64_t>(1, steps - warmup));
  return std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * done)));
}

}  // namespace valora::generator
