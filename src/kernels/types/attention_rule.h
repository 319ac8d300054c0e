// How a decoder layer attends, for the attention kernels of all devices.
#pragma once

#include <cmath>
#include <cstdint>

namespace valora::kernels {

struct AttentionRule {
  // The number of positions a query attends to, the most recent ones including its own; 0: all up
  // to its own. Later positions in its joint range are always visible.
  int64_t window = 0;
  double scale = 0;  // factor on all scores; 0: 1/sqrt(dim)

  double scale_of(int64_t dim) const {
    return scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(dim));
  }
};

}  // namespace valora::kernels
