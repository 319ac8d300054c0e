// States of sequences besides their KV: those of running sequences, and the nodes' checkpoints.
#include <utility>

#include "base/reserve.h"
#include "memory/pool.h"

namespace valora::memory {

void Pool::truncate_to_checkpoint(std::vector<KvNode*>& prefix) {
  while (!prefix.empty() && prefix.back()->checkpoint.empty()) prefix.pop_back();
}

void Pool::release_all(std::vector<BlockId>& blocks) {
  for (const BlockId block : blocks) arena_.release(block);
  blocks.clear();
}

void Pool::drop_states(BlockTable& table) {
  tree_.release_checkpoint(table.start);
  release_all(table.state);
  for (auto& blocks : table.kept) release_all(blocks);
}

int Pool::reserve_checkpoints(BlockTable& table, int count) {
  for (auto& blocks : table.kept) release_all(blocks);
  for (int made = 0; made < count; ++made) {
    std::vector<BlockId>& blocks = table.kept[made];
    reserve_more(blocks, config_.state_blocks);
    if (make_room(Kind::kKv, config_.state_blocks) != Room::kReserved) return made;
    for (int32_t i = 0; i < config_.state_blocks; ++i) blocks.push_back(*arena_.allocate());
  }
  return count;
}

void Pool::record_state(BlockTable& table, int begin, std::span<const int> checkpoints) {
  tree_.release_checkpoint(table.start);
  for (size_t i = 0; i < checkpoints.size(); ++i) {
    std::vector<BlockId>& blocks = table.kept[i];
    const int index = (begin + checkpoints[i]) / kBlockTokens - 1;
    KvNode* node = index < table.committed ? tree_.node_of(table.blocks[index]) : nullptr;
    if (node && node->resident() && node->checkpoint.empty())
      tree_.set_checkpoint(*node, std::exchange(blocks, {}));
  }
  for (auto& blocks : table.kept) release_all(blocks);
}

// For nodes that cannot be evicted now: sequences that hold their KV do not need the checkpoint.
bool Pool::drop_oldest_checkpoint() {
  KvNode* oldest = nullptr;
  for (KvNode* node : tree_.checkpoints())
    if (tree_.idle_checkpoint(*node) && (!oldest || node->last_use < oldest->last_use))
      oldest = node;
  if (oldest) tree_.drop_checkpoint(*oldest);
  return oldest != nullptr;
}

}  // namespace valora::memory
