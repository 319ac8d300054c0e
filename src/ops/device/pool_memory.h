// The memory of a pool of equal blocks, shared by the KV cache (ops/attention/attention.h) and
// adapters (ops/weights/panel_layout.h).
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>

namespace valora::ops {

// The block size that fits a KV block and any panel of an adapter. A multiple of 64.
size_t pool_block_bytes(size_t kv_block_bytes, size_t largest_panel_bytes);

class PoolMemory {
 public:
  PoolMemory() = default;
  // One zero-filled allocation, on huge pages if it is on the CPU. block_bytes: a multiple of 64.
  // Throws c10::Error if memory is exhausted.
  PoolMemory(int32_t blocks, size_t block_bytes, at::Device device);

  int32_t blocks() const { return blocks_; }
  size_t block_bytes() const { return block_bytes_; }
  // 64-byte aligned, in the device's memory.
  std::byte* block(int32_t index) const {
    return begin_ + static_cast<size_t>(index) * block_bytes_;
  }
  // The first `bytes` of a block: uint8 [bytes].
  at::Tensor bytes_of(int32_t index, size_t bytes) const;
  // All blocks as elements of a dtype, [blocks, elements per block], sharing the memory.
  at::Tensor as(at::ScalarType dtype) const {
    return data_.view({blocks_, static_cast<int64_t>(block_bytes_)}).view(dtype);
  }

 private:
  at::Tensor data_;  // uint8
  std::byte* begin_ = nullptr;
  int32_t blocks_ = 0;
  size_t block_bytes_ = 0;
};

}  // namespace valora::ops
