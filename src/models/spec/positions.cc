#include "models/spec/positions.h"

#include <algorithm>

namespace valora::models {

int64_t length_of(std::span<const int32_t> positions) {
  return positions.empty() ? 0 : int64_t{std::ranges::max(positions)} + 1;
}

Positions text_positions(int tokens, int axes) {
  Positions positions;
  positions.prompt.reserve(static_cast<size_t>(tokens) * axes);
  for (int a = 0; a < axes; ++a)
    for (int i = 0; i < tokens; ++i) positions.prompt.push_back(i);
  return positions;
}

}  // namespace valora::models
