#pragma once

#include <cstdint>

namespace valora {

// Positions [begin, end) in a sequence of tokens.
struct PositionRange {
  int64_t begin = 0, end = 0;
};

}  // namespace valora
