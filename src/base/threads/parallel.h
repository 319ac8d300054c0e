// libtorch's thread pool is the only compute pool. Torch-free code receives it as a ParallelFor
// (at::parallel_for in the program, serial_for in tests).
#pragma once

#include <cstdint>
#include <functional>

namespace valora {

// Calls body(begin, end) over disjoint sub-ranges of [begin, end), each at least `grain` long if
// possible. Returns when all calls have returned.
using ParallelBody = std::function<void(int64_t begin, int64_t end)>;
using ParallelFor =
    std::function<void(int64_t begin, int64_t end, int64_t grain, const ParallelBody& body)>;

inline void serial_for(int64_t begin, int64_t end, int64_t, const ParallelBody& body) {
  if (begin < end) body(begin, end);
}

}  // namespace valora
