// For tests: a ParallelFor that runs each half of the range on its own thread.
#pragma once

#include <thread>

#include "base/threads/parallel.h"

namespace valora::kernels::testing_support {

inline void two_threads(int64_t begin, int64_t end, int64_t, const ParallelBody& body) {
  const int64_t middle = begin + (end - begin) / 2;
  std::thread other([&] {
    if (begin < middle) body(begin, middle);
  });
  body(middle, end);
  other.join();
}

}  // namespace valora::kernels::testing_support
