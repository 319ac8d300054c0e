// DependencyTree::check(): compares the tree with the reference counts of the arena.
#include <fmt/format.h>

#include "memory/dependency_tree.h"

namespace valora::memory {

std::string DependencyTree::check_node(const Digest& key, const Node& node) const {
  const std::string name = "node " + key.hex();
  if (node.key != key) return name + " is stored under another key";
  if (node.block < 0 || node.block >= arena_.total_blocks()) return name + " has no block";
  if (by_block_[node.block] != &node) return name + " does not own its block";
  if (arena_.references(node.block) < 1) return name + " refers to a freed block";
  if (node.held != (arena_.references(node.block) > 1)) return name + " has a wrong held flag";

  const Node* parent = node.parent;
  if (!parent) return name + " has no parent";
  const auto& owners = parent->parent ? kv_nodes_ : adapters_;
  const auto it = owners.find(parent->key);
  if (it == owners.end() || &it->second != parent) return name + " has a parent outside the tree";
  if (parent->adapter != node.adapter) return name + " and its parent differ in the adapter";
  if (node.place >= parent->children.size() || parent->children[node.place] != &node) {
    return name + " is not among its parent's children";
  }

  int32_t busy_children = 0;
  for (const Node* child : node.children) {
    busy_children += child->busy() ? 1 : 0;
    if (!node.busy() && child->last_use > node.last_use)
      return name + " was used less recently than its child";
  }
  if (busy_children != node.busy_children) return name + " miscounts its busy children";

  const auto leaf = idle_leaves_.find(node.last_use);
  const bool listed = leaf != idle_leaves_.end() && leaf->second == &node;
  if (listed != (node.children.empty() && !node.busy()))
    return name + " is wrongly listed as evictable";
  return {};
}

std::string DependencyTree::check() const {
  int32_t idle = 0, owners = 0;
  size_t children = 0, leaves = 0;
  for (const auto& [key, node] : kv_nodes_) {
    if (std::string error = check_node(key, node); !error.empty()) return error;
    idle += node.busy() ? 0 : 1;
    leaves += !node.busy() && node.children.empty() ? 1 : 0;
    children += node.children.size();
  }
  for (const auto& [key, node] : adapters_) {
    if (node.key != key || node.adapter != key || node.parent)
      return "adapter " + key.hex() + " is stored under another key or has a parent";
    if (node.children.empty()) return "adapter " + key.hex() + " is kept without children";
    int32_t busy_children = 0;
    for (const Node* child : node.children) busy_children += child->busy() ? 1 : 0;
    if (busy_children != node.busy_children)
      return "adapter " + key.hex() + " miscounts its busy children";
    children += node.children.size();
  }
  for (const Node* node : by_block_) owners += node ? 1 : 0;
  if (owners != nodes()) return fmt::format("{} blocks belong to {} nodes", owners, nodes());
  if (children != kv_nodes_.size())
    return fmt::format("{} nodes are listed as {} children", kv_nodes_.size(), children);
  if (leaves != idle_leaves_.size())
    return fmt::format("{} idle leaves are listed as {}", leaves, idle_leaves_.size());
  if (idle != idle_nodes_) return fmt::format("{} idle nodes are counted as {}", idle, idle_nodes_);
  return {};
}

}  // namespace valora::memory
