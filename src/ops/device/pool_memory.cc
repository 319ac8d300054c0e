#include "ops/device/pool_memory.h"

#include <algorithm>

#include "ops/device/huge_memory.h"

namespace valora::ops {
namespace {

constexpr size_t kLine = 64;  // bytes; kernels read whole cache lines

}  // namespace

size_t pool_block_bytes(size_t kv_block_bytes, size_t largest_panel_bytes) {
  return (std::max(kv_block_bytes, largest_panel_bytes) + kLine - 1) / kLine * kLine;
}

PoolMemory::PoolMemory(int32_t blocks, size_t block_bytes, at::Device device)
    : blocks_(blocks), block_bytes_(block_bytes) {
  TORCH_CHECK(blocks >= 0 && block_bytes > 0 && block_bytes % kLine == 0, "a pool of ", blocks,
              " blocks of ", block_bytes, " bytes, which is not a multiple of ", kLine);
  const int64_t bytes = blocks * static_cast<int64_t>(block_bytes);
  data_ = device.is_cpu() ? huge_zeros(bytes, at::kByte)
                          : at::zeros({bytes}, at::TensorOptions().dtype(at::kByte).device(device));
  begin_ = static_cast<std::byte*>(data_.data_ptr());
}

at::Tensor PoolMemory::bytes_of(int32_t index, size_t bytes) const {
  return data_.narrow(0, index * static_cast<int64_t>(block_bytes_), static_cast<int64_t>(bytes));
}

}  // namespace valora::ops
