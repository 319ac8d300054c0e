#include "memory/block_arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace valora::memory {

BlockArena::BlockArena(int32_t blocks) : references_(std::max(0, blocks), 0) {
  free_.reserve(references_.size());
  for (BlockId block = total_blocks() - 1; block >= 0; --block) free_.push_back(block);
  capacity_ = total_blocks();
}

std::optional<BlockId> BlockArena::allocate() {
  if (free_blocks() == 0) return std::nullopt;
  const BlockId block = free_.back();
  free_.pop_back();
  references_[block] = 1;
  return block;
}

void BlockArena::retain(BlockId block) {
  assert(references_[block] > 0);
  ++references_[block];
}

void BlockArena::release(BlockId block) {
  assert(references_[block] > 0);
  if (--references_[block] == 0) free_.push_back(block);
}

std::string BlockArena::check() const {
  std::vector<bool> is_free(references_.size(), false);
  for (BlockId block : free_) {
    if (block < 0 || block >= total_blocks())
      return fmt::format("block {} in the free list does not exist", block);
    if (is_free[block]) return fmt::format("block {} is in the free list twice", block);
    is_free[block] = true;
  }
  for (BlockId block = 0; block < total_blocks(); ++block) {
    if (is_free[block] != (references_[block] == 0)) {
      return fmt::format("block {} has {} references and is {}in the free list", block,
                         references_[block], is_free[block] ? "" : "not ");
    }
  }
  return {};
}

}  // namespace valora::memory
