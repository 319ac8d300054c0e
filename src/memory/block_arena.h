// Block allocator of one memory tier: equal blocks with reference counts (unified paging, S-LoRA
// §4). It knows block numbers only; the engine owns the memory that they stand for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace valora::memory {

using BlockId = int32_t;
inline constexpr BlockId kNoBlock = -1;
inline constexpr int kBlockTokens = 16;  // tokens per block; a block holds K and V of all layers

// Number of blocks for `tokens` tokens of one sequence.
constexpr int32_t blocks_for(int64_t tokens) {
  return static_cast<int32_t>((tokens + kBlockTokens - 1) / kBlockTokens);
}

class BlockArena {
 public:
  explicit BlockArena(int32_t blocks);

  // Takes a free block and gives it one reference. Empty if no block is free.
  std::optional<BlockId> allocate();
  // Adds or drops a reference. The block must have at least one. Dropping the last one frees it.
  void retain(BlockId block);
  void release(BlockId block);

  int32_t references(BlockId block) const { return references_[block]; }
  int32_t total_blocks() const { return static_cast<int32_t>(references_.size()); }
  int32_t free_blocks() const { return static_cast<int32_t>(free_.size()); }

  // Checks that the free list holds exactly the blocks without references, each once. Returns an
  // empty string, or the first violation.
  std::string check() const;

 private:
  std::vector<int32_t> references_;
  std::vector<BlockId> free_;  // a stack: the last one is allocated next
};

}  // namespace valora::memory
