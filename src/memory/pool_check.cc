// Pool::stats() and Pool::check().
#include <fmt/format.h>

#include "memory/pool.h"

namespace valora::memory {

PoolStats Pool::stats() const {
  PoolStats stats = totals_;
  const DependencyTree::Counts& counts = tree_.counts();
  stats.total = total_blocks();
  stats.free = arena_.free_blocks();
  stats.adapter_blocks = counts.adapter_blocks;
  stats.history_blocks = counts.kv - counts.held_kv + counts.idle_checkpoint_blocks;
  stats.running_blocks = arena_.used_blocks() - counts.adapter_blocks - stats.history_blocks;
  stats.invalid_blocks = config_.dependencies ? 0 : tree_.invalid_kv();
  stats.swap_total = swap_.total_blocks();
  stats.swap_used = swap_.used_blocks();
  stats.adapters = counts.adapters;
  return stats;
}

std::string Pool::check(std::span<const BlockTable* const> tables,
                        std::span<const Claim* const> claims) const {
  if (std::string error = arena_.check(); !error.empty()) return error;
  if (std::string error = swap_.check(); !error.empty()) return "swap space: " + error;
  if (std::string error = tree_.check(); !error.empty()) return error;
  std::vector<int32_t> expected(arena_.total_blocks(), 0);
  for (const BlockTable* table : tables) {
    if (table->committed < 0 || table->committed > static_cast<int>(table->blocks.size()))
      return "a table has committed more blocks than it has";
    for (const BlockId block : table->blocks) ++expected[block];
    for (const auto* states : {&table->state, &table->start, &table->kept[0], &table->kept[1]})
      for (const BlockId block : *states) ++expected[block];
    const size_t state = table->blocks.empty() ? 0 : config_.state_blocks;
    if (table->state.size() != state) return "a table has a state of a wrong size";
  }
  for (const KvNode* node : tree_.checkpoints())
    for (const BlockId block : node->checkpoint) ++expected[block];
  std::unordered_map<const AdapterNode*, int32_t> pins;
  for (const Claim* claim : claims)
    for (const BlockId block : claim->prefix.blocks) ++expected[block];
  for (const Claim* claim : claims)
    for (const AdapterNode* node : claim->pinned) ++pins[node];
  for (const auto& [key, node] : tree_.adapters()) {
    for (const BlockId block : node.blocks) ++expected[block];
    if (node.pins != pins[&node])
      return fmt::format("adapter {} has {} pins instead of {}", key.hex(), node.pins, pins[&node]);
    if (node.move != 0 && !moves_.contains(node.move))
      return "adapter " + key.hex() + " waits for no move";
  }
  for (BlockId block = 0; block < arena_.total_blocks(); ++block) {
    expected[block] += tree_.node_of(block) ? 1 : 0;
    if (arena_.references(block) != expected[block])
      return fmt::format("block {} has {} references instead of {}", block,
                         arena_.references(block), expected[block]);
  }
  for (const auto& [id, move] : moves_) {
    if (tree_node(move.node).move != id) return fmt::format("move {} is not its node's", id);
  }
  return {};
}

}  // namespace valora::memory
