#include "ops/device/parallel.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace valora::ops {
namespace {

// Two parts that wait for each other finish only if they run concurrently.
TEST(TorchParallel, RunsPartsConcurrently) {
  at::set_num_threads(2);
  std::latch both(2);
  std::atomic<int> parts = 0;
  torch_parallel()(0, 2, 1, [&](int64_t begin, int64_t end) {
    if (end - begin == 2) return;  // one part: serial
    ++parts;
    both.arrive_and_wait();
  });
  EXPECT_EQ(parts, 2);
}

TEST(TorchParallel, RunsAfterReleasingThreads) {
  at::set_num_threads(2);
  for (int i = 0; i < 3; ++i) {
    std::atomic<int64_t> sum = 0;
    torch_parallel()(0, 1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, 1000);
    release_threads();
  }
}

}  // namespace
}  // namespace valora::ops
