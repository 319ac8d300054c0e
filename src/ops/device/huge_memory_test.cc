#include "ops/device/huge_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace valora::ops {
namespace {

// Whether any page takes physical memory.
bool resident(const void* data, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  return mincore(const_cast<void*>(data), bytes, pages.data()) == 0 &&  // -1: no longer mapped
         std::ranges::any_of(pages, [](unsigned char state) { return (state & 1) != 0; });
}

TEST(HugeMemory, TensorsAreZeroAndApart) {
  const std::vector<int64_t> sizes{0, 1, 1 << 14, 1 << 17, (1 << 17) + 3, 5 << 20, 9 << 20};
  std::vector<at::Tensor> tensors;
  for (const int64_t size : sizes)
    for (int i = 0; i < 3; ++i) tensors.push_back(huge_zeros(size, at::kFloat));
  for (size_t i = 0; i < tensors.size(); ++i) {
    ASSERT_EQ(tensors[i].numel(), sizes[i / 3]);
    ASSERT_TRUE(tensors[i].eq(0).all().item<bool>());
    tensors[i].fill_(static_cast<float>(i + 1));
  }
  for (size_t i = 0; i < tensors.size(); ++i)
    ASSERT_TRUE(tensors[i].eq(static_cast<float>(i + 1)).all().item<bool>());
}

TEST(HugeMemory, ReleasedTensorsReturnTheirMemoryAndLeaveTheirNeighboursAlone) {
  constexpr int64_t kElements = (300 << 10) / 4;  // several in one huge page
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 12; ++i)
    tensors.push_back(huge_zeros(kElements, at::kFloat).fill_(static_cast<float>(i)));
  for (size_t i = 0; i < tensors.size(); i += 2) {
    const void* data = tensors[i].data_ptr();
    ASSERT_TRUE(resident(data, kElements * 4));
    tensors[i].reset();
    EXPECT_FALSE(resident(data, kElements * 4));
  }
  for (size_t i = 1; i < tensors.size(); i += 2)
    EXPECT_TRUE(tensors[i].eq(static_cast<float>(i)).all().item<bool>());
}

}  // namespace
}  // namespace valora::ops
