// Counts finished parts of long computations in this process, such as layers of a step or pieces of
// a vision tower. A watchdog uses it to tell slow progress from none.
#pragma once

#include <atomic>
#include <cstdint>

namespace valora {

inline std::atomic<uint64_t>& parts_done() {
  static std::atomic<uint64_t> parts{0};
  return parts;
}

}  // namespace valora
