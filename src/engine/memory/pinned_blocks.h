// Pinned host memory that backs a pool in GPU memory.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "memory/block_arena.h"

namespace valora {

// Blocks of equal size. Threads may use different blocks at the same time.
class PinnedBlocks {
 public:
  // Throws c10::Error if memory is exhausted.
  PinnedBlocks(int32_t blocks, size_t block_bytes);
  // uint8 [block_bytes]
  at::Tensor block(memory::BlockId block) const;

 private:
  int64_t block_bytes_, per_chunk_;
  std::vector<at::Tensor> chunks_;
};

}  // namespace valora
