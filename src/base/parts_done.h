// Counts the parts of long computations that this process has done: layers of a step, pieces of a
// vision tower. Who watches a thread that computes tells by it slow work from none.
#pragma once

#include <atomic>
#include <cstdint>

namespace valora {

inline std::atomic<uint64_t>& parts_done() {
  static std::atomic<uint64_t> parts{0};
  return parts;
}

}  // namespace valora
