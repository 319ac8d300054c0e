// Book-keeping of one memory tier: one allocation cut into equal blocks (S-LoRA §4 unified paging).
// KV cache and, later, adapter panels take whole blocks from the same arena. The memory itself is
// the engine's; here are only block numbers and their reference counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace valora::memory {

using BlockId = int32_t;
inline constexpr BlockId kNoBlock = -1;
inline constexpr int kBlockTokens = 16;  // tokens of all layers, K and V, in one block

// Blocks that hold `tokens` tokens of one sequence.
constexpr int32_t blocks_for(int64_t tokens) {
  return static_cast<int32_t>((tokens + kBlockTokens - 1) / kBlockTokens);
}

class BlockArena {
 public:
  explicit BlockArena(int32_t blocks);

  // A free block with one reference; none when all are taken.
  std::optional<BlockId> allocate();
  // Both take a block that has a reference.
  void retain(BlockId block);
  // The last release frees the block.
  void release(BlockId block);

  int32_t references(BlockId block) const { return references_[block]; }
  int32_t total_blocks() const { return static_cast<int32_t>(references_.size()); }
  int32_t free_blocks() const { return static_cast<int32_t>(free_.size()); }

  // Empty when the free list holds exactly the blocks without references, each once; else what is
  // wrong.
  std::string check() const;

 private:
  std::vector<int32_t> references_;
  std::vector<BlockId> free_;  // the last one is handed out first
};

}  // namespace valora::memory
