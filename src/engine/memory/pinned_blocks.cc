#include "engine/memory/pinned_blocks.h"

#include <algorithm>

#include "ops/device/device_copy.h"

namespace valora {
namespace {

// The pinned-memory allocator rounds up to powers of two: larger chunks would waste more.
constexpr int64_t kChunkBytes = int64_t{64} << 20;

}  // namespace

PinnedBlocks::PinnedBlocks(int32_t blocks, size_t block_bytes)
    : block_bytes_(static_cast<int64_t>(block_bytes)),
      per_chunk_(std::max<int64_t>(1, kChunkBytes / block_bytes_)) {
  for (int64_t begin = 0; begin < blocks; begin += per_chunk_)
    chunks_.push_back(ops::pinned_bytes(std::min(per_chunk_, blocks - begin) * block_bytes_));
}

at::Tensor PinnedBlocks::block(memory::BlockId block) const {
  return chunks_[block / per_chunk_].narrow(0, block % per_chunk_ * block_bytes_, block_bytes_);
}

}  // namespace valora
