// Block allocator of one memory tier: blocks of equal size with reference counts (unified paging,
// S-LoRA §4). It only handles block numbers; the engine owns the memory behind them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace valora::memory {

using BlockId = int32_t;
inline constexpr BlockId kNoBlock = -1;
inline constexpr int kBlockTokens = 16;  // tokens per block; a block holds K and V of all layers

// Blocks needed for `tokens` tokens of one sequence.
constexpr int32_t blocks_for(int64_t tokens) {
  return static_cast<int32_t>((tokens + kBlockTokens - 1) / kBlockTokens);
}

// Only the constructor and check() allocate memory.
class BlockArena {
 public:
  explicit BlockArena(int32_t blocks);

  // Allocates a block with one reference; nullopt if no block is free.
  std::optional<BlockId> allocate();
  // Adds or drops a reference to a block that has at least one. Dropping the last one frees the
  // block.
  void retain(BlockId block);
  void release(BlockId block);

  // Limits how many blocks may be in use, 0 … total_blocks(). If more are in use already, no block
  // counts as free until enough have been released.
  void set_capacity(int32_t blocks) { capacity_ = std::clamp(blocks, 0, total_blocks()); }

  int32_t references(BlockId block) const { return references_[block]; }
  int32_t total_blocks() const { return static_cast<int32_t>(references_.size()); }
  int32_t capacity() const { return capacity_; }
  // Blocks that allocate() can still hand out.
  int32_t free_blocks() const {
    return std::max(0, unused_blocks() - (total_blocks() - capacity_));
  }
  // Blocks without references, even if the capacity does not allow their use.
  int32_t unused_blocks() const { return static_cast<int32_t>(free_.size()); }
  int32_t used_blocks() const { return total_blocks() - unused_blocks(); }

  // Checks that the free list holds exactly the blocks without references, each once. Returns an
  // empty string, or the first violation.
  std::string check() const;

 private:
  std::vector<int32_t> references_;
  std::vector<BlockId> free_;  // a stack: the last one is allocated first
  int32_t capacity_ = 0;
};

// Blocks allocated for an operation that may still fail: the destructor frees them unless keep()
// was called.
class TakenBlocks {
 public:
  // The arena must have `count` free blocks.
  TakenBlocks(BlockArena& arena, int32_t count) : arena_(arena) {
    blocks_.reserve(count);
    for (int32_t i = 0; i < count; ++i) blocks_.push_back(*arena_.allocate());
  }
  ~TakenBlocks() {
    for (const BlockId block : blocks_) arena_.release(block);
  }
  TakenBlocks(const TakenBlocks&) = delete;
  TakenBlocks& operator=(const TakenBlocks&) = delete;

  const std::vector<BlockId>& blocks() const { return blocks_; }
  std::vector<BlockId> keep() { return std::exchange(blocks_, {}); }

 private:
  BlockArena& arena_;
  std::vector<BlockId> blocks_;
};

}  // namespace valora::memory
