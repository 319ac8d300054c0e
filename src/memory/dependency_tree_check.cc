// DependencyTree::check(): compares the tree with the arenas, and the counts with the nodes.
#include <fmt/format.h>

#include "memory/dependency_tree.h"

namespace valora::memory {

std::string DependencyTree::check_node(const KvNode& node) const {
  const std::string name = "node " + node.key.hex();
  if (node.present()) {
    if (by_block_[node.block] != &node) return name + " does not own its block";
    if (arena_.references(node.block) < 1) return name + " refers to a freed block";
    if (node.held != (arena_.references(node.block) > 1)) return name + " has a wrong held flag";
    if (node.parent && !node.parent->present()) return name + " is in the pool without its parent";
    if (node.leaving && !node.idle()) return name + " is to leave while it is in use";
    if (node.held && node.parent && !node.parent->resident())
      return name + " is in use below a node that is not ready";
  } else if (node.held || node.leaving || node.flight != Flight::kNone) {
    return name + " is used or in flight outside the pool";
  }
  if (node.swapped != kNoBlock &&
      (by_swap_[node.swapped] != &node || swap_.references(node.swapped) != 1))
    return name + " does not own its swap block";
  if (!node.present() && node.swapped == kNoBlock) return name + " is in no tier";
  if (node.flight == Flight::kIn && node.swapped == kNoBlock)
    return name + " is filled from nowhere";
  if (node.flight == Flight::kOut && node.swapped == kNoBlock) return name + " is saved to nowhere";
  if (node.flight == Flight::kNone ? node.move != 0 : node.move == 0 && !node.broken)
    return name + " and its move disagree";
  if (node.broken && node.flight != Flight::kIn) return name + " is broken but not being filled";

  if (node.parent && node.parent->root != node.root) return name + " and its parent differ in root";
  const auto& siblings = node.parent ? node.parent->children : node.root->children;
  if (node.place >= siblings.size() || siblings[node.place] != &node)
    return name + " is not among its parent's children";
  int32_t present = 0, busy = 0;
  for (const KvNode* child : node.children) {
    present += child->present() ? 1 : 0;
    busy += child->busy() ? 1 : 0;
  }
  if (present != node.present_children) return name + " miscounts its children in the pool";
  if (busy != node.busy_children) return name + " miscounts its busy children";
  const bool listed = node.leaf >= 0 && node.leaf < static_cast<int32_t>(leaves_.size()) &&
                      leaves_[node.leaf] == &node;
  if (listed != (node.idle() && present == 0)) return name + " is wrongly listed as an idle leaf";
  return {};
}

std::string DependencyTree::check_root(const KvRoot& root) const {
  const std::string name = "root " + root.identity.hex();
  if (root.children.empty()) return name + " is empty";
  int32_t present = 0;
  for (const KvNode* child : root.children) {
    present += child->present() ? 1 : 0;
    if (child->root != &root || child->parent) return name + " has a child of another root";
  }
  if (present != root.present_children) return name + " miscounts its children in the pool";
  for (const AdapterNode* adapter : root.adapters) {
    if (dependencies_ && present > 0 && !adapter->resident())
      return name + " has blocks in the pool without adapter " + adapter->key.hex();
    if (std::ranges::count(adapter->roots, &root) != 1)
      return name + " is not listed once by its adapter";
  }
  return {};
}

std::string DependencyTree::check_adapter(const AdapterNode& node) const {
  const std::string name = "adapter " + node.key.hex();
  if (node.present() && static_cast<int32_t>(node.blocks.size()) != node.size)
    return name + " lies in part in the pool";
  if (node.pins < 0) return name + " has a negative number of pins";
  if (node.flight == Flight::kOut) return name + " is being saved";
  if (node.flight == Flight::kIn && !node.present()) return name + " is loaded to nowhere";
  if ((node.flight == Flight::kNone) != (node.move == 0)) return name + " and its move disagree";
  int32_t present_roots = 0;
  for (const KvRoot* root : node.roots) present_roots += root->present_children > 0 ? 1 : 0;
  if (present_roots != node.present_roots) return name + " miscounts its roots in the pool";
  for (const BlockId block : node.blocks)
    if (by_block_[block] || arena_.references(block) != 1)
      return fmt::format("{} shares block {}", name, block);
  return {};
}

std::string DependencyTree::check_checkpoints() const {
  int32_t blocks = 0, idle = 0, owners = 0;
  for (size_t i = 0; i < checkpoints_.size(); ++i) {
    const KvNode& node = *checkpoints_[i];
    const std::string name = "the checkpoint of node " + node.key.hex();
    if (node.checkpoint_place != static_cast<int32_t>(i) || node.checkpoint.empty())
      return name + " is wrongly listed";
    if (!node.resident()) return name + " is in the pool without it";
    for (const BlockId block : node.checkpoint)
      if (by_block_[block] || arena_.references(block) < 1)
        return fmt::format("{} shares block {}", name, block);
    if (by_checkpoint_[node.checkpoint.front()] != &node)
      return name + " is not found by its block";
    blocks += static_cast<int32_t>(node.checkpoint.size());
    idle += idle_checkpoint(node) ? static_cast<int32_t>(node.checkpoint.size()) : 0;
  }
  for (const KvNode* node : by_checkpoint_) owners += node ? 1 : 0;
  if (owners != static_cast<int32_t>(checkpoints_.size())) return "checkpoints without a node";
  if (blocks != counts_.checkpoint_blocks || idle != counts_.idle_checkpoint_blocks)
    return fmt::format("{} blocks of checkpoints, {} idle, are counted as {}, {}", blocks, idle,
                       counts_.checkpoint_blocks, counts_.idle_checkpoint_blocks);
  return {};
}

std::string DependencyTree::check() const {
  if (std::string error = check_checkpoints(); !error.empty()) return error;
  Counts counts;
  size_t leaves = 0;
  int32_t swapped = 0;
  for (const auto& [key, node] : kv_nodes_) {
    if (node.key != key) return "node " + key.hex() + " is stored under another key";
    if (std::string error = check_node(node); !error.empty()) return error;
    counts.kv += node.present() ? 1 : 0;
    counts.idle_kv += node.idle() ? 1 : 0;
    counts.held_kv += node.held ? 1 : 0;
    counts.leaving += node.leaving ? 1 : 0;
    swapped += node.swapped != kNoBlock ? 1 : 0;
    leaves += node.leaf >= 0 ? 1 : 0;
    if (node.checkpoint.empty() != (node.checkpoint_place < 0))
      return "node " + key.hex() + " and its checkpoint disagree";
  }
  int32_t below = 0;
  for (const auto& [key, root] : roots_) {
    below += root.blocks;
    if (root.identity != key) return "root " + key.hex() + " is stored under another identity";
    if (std::string error = check_root(root); !error.empty()) return error;
  }
  for (const auto& [key, node] : adapters_) {
    if (node.key != key) return "adapter " + key.hex() + " is stored under another digest";
    if (std::string error = check_adapter(node); !error.empty()) return error;
    const auto blocks = static_cast<int32_t>(node.blocks.size());
    counts.adapter_blocks += blocks;
    counts.adapters += node.present() ? 1 : 0;
    counts.idle_adapter_blocks += node.resident() && !node.pinned() ? blocks : 0;
  }
  if (leaves != leaves_.size())
    return fmt::format("{} idle leaves are listed as {}", leaves, leaves_.size());
  const auto counted = [](const Counts& c) {
    return fmt::format("{} kv, {} held, {} idle, {} leaving, {} of {} adapters, {} idle", c.kv,
                       c.held_kv, c.idle_kv, c.leaving, c.adapter_blocks, c.adapters,
                       c.idle_adapter_blocks);
  };
  if (counted(counts) != counted(counts_))
    return counted(counts) + " are counted as " + counted(counts_);
  if (below != counts.kv) return fmt::format("roots count {} of {} blocks", below, counts.kv);
  int32_t owners = 0, swap_owners = 0;
  for (const KvNode* node : by_block_) owners += node ? 1 : 0;
  for (const KvNode* node : by_swap_) swap_owners += node ? 1 : 0;
  if (owners != counts.kv) return fmt::format("{} blocks belong to {} nodes", owners, counts.kv);
  if (swap_owners != swapped || swapped != swap_.total_blocks() - swap_.unused_blocks())
    return fmt::format("{} of {} used swap blocks belong to {} nodes", swap_owners,
                       swap_.total_blocks() - swap_.unused_blocks(), swapped);
  return {};
}

}  // namespace valora::memory
