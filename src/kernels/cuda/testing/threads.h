// Host threads that compute references in double.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace valora::kernels::cuda {

// Calls body(i) for all i in [0, count), on all cores.
template <typename Body>
void for_each_index(int64_t count, const Body& body) {
  const auto cores = std::max(1u, std::thread::hardware_concurrency());
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t i; (i = next.fetch_add(1)) < count;) body(i);
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < cores && t < count; ++t) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
}

}  // namespace valora::kernels::cuda
