// Checkpoints of nodes: the states of sequences at the ends of the nodes' blocks.
#include <cassert>
#include <utility>

#include "memory/dependency_tree.h"

namespace valora::memory {

bool DependencyTree::idle_checkpoint(const KvNode& node) const {
  return !node.checkpoint.empty() && arena_.references(node.checkpoint.front()) == 1;
}

void DependencyTree::set_checkpoint(KvNode& node, std::vector<BlockId> blocks) {
  assert(node.resident() && node.checkpoint.empty() && !blocks.empty());
  const auto count = static_cast<int32_t>(blocks.size());
  by_checkpoint_[blocks.front()] = &node;
  node.checkpoint = std::move(blocks);
  node.checkpoint_place = static_cast<int32_t>(checkpoints_.size());
  checkpoints_.push_back(&node);  // the constructor reserved capacity
  counts_.checkpoint_blocks += count;
  counts_.idle_checkpoint_blocks += idle_checkpoint(node) ? count : 0;
}

void DependencyTree::drop_checkpoint(KvNode& node) {
  const auto count = static_cast<int32_t>(node.checkpoint.size());
  counts_.checkpoint_blocks -= count;
  counts_.idle_checkpoint_blocks -= idle_checkpoint(node) ? count : 0;
  by_checkpoint_[node.checkpoint.front()] = nullptr;
  for (const BlockId block : node.checkpoint) arena_.release(block);
  node.checkpoint.clear();
  KvNode* const last = checkpoints_.back();
  checkpoints_[node.checkpoint_place] = last;
  last->checkpoint_place = node.checkpoint_place;
  checkpoints_.pop_back();
  node.checkpoint_place = -1;
}

std::vector<BlockId> DependencyTree::hold_checkpoint(const KvNode& node) {
  std::vector<BlockId> blocks = node.checkpoint;
  if (idle_checkpoint(node)) counts_.idle_checkpoint_blocks -= static_cast<int32_t>(blocks.size());
  for (const BlockId block : blocks) arena_.retain(block);
  return blocks;
}

void DependencyTree::release_checkpoint(std::vector<BlockId>& blocks) {
  if (blocks.empty()) return;
  const KvNode* node = by_checkpoint_[blocks.front()];
  for (const BlockId block : blocks) arena_.release(block);
  if (node && idle_checkpoint(*node))
    counts_.idle_checkpoint_blocks += static_cast<int32_t>(blocks.size());
  blocks.clear();
}

}  // namespace valora::memory
