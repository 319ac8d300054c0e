#include "memory/dependency_tree.h"

#include <cassert>

namespace valora::memory {

const DependencyTree::Node* DependencyTree::find_adapter(const Digest& adapter) const {
  const auto it = adapters_.find(adapter);
  return it == adapters_.end() ? nullptr : &it->second;
}

const DependencyTree::Node* DependencyTree::find_child(const Node& parent,
                                                       const Digest& key) const {
  const auto it = kv_nodes_.find(key);
  return it == kv_nodes_.end() || it->second.parent != &parent ? nullptr : &it->second;
}

std::vector<BlockId> DependencyTree::match(const Digest& adapter, std::span<const Digest> keys) {
  std::vector<BlockId> blocks;
  const Node* node = find_adapter(adapter);
  for (const Digest& key : keys) {
    node = node ? find_child(*node, key) : nullptr;
    if (!node) break;
    arena_.retain(node->block);
    set_held(*by_block_[node->block], true);
    blocks.push_back(node->block);
  }
  return blocks;
}

DependencyTree::Found DependencyTree::find(const Digest& adapter,
                                           std::span<const Digest> keys) const {
  Found found;
  const Node* node = find_adapter(adapter);
  for (const Digest& key : keys) {
    node = node ? find_child(*node, key) : nullptr;
    if (!node) break;
    ++found.blocks;
    found.evictable += node->busy() ? 0 : 1;
  }
  return found;
}

bool DependencyTree::contains(const Digest& adapter, const Digest& key) const {
  const auto it = kv_nodes_.find(key);
  return it != kv_nodes_.end() && it->second.adapter == adapter;
}

bool DependencyTree::insert(const Digest& adapter, std::span<const Digest> keys, BlockId block) {
  if (keys.empty() || by_block_[block] || kv_nodes_.contains(keys.back())) return false;
  Node* parent = nullptr;
  if (keys.size() == 1) {
    parent = &adapters_[adapter];
    parent->key = parent->adapter = adapter;
  } else {
    const auto it = kv_nodes_.find(keys[keys.size() - 2]);
    if (it == kv_nodes_.end() || it->second.adapter != adapter) return false;
    parent = &it->second;
  }
  arena_.retain(block);
  Node& node = kv_nodes_[keys.back()];
  node.parent = parent;
  node.place = parent->children.size();
  node.key = keys.back();
  node.adapter = adapter;
  node.block = block;
  parent->children.push_back(&node);
  by_block_[block] = &node;
  ++idle_nodes_;
  set_held(node, true);
  return true;
}

void DependencyTree::release(BlockId block) {
  arena_.release(block);
  Node* node = by_block_[block];
  if (node && arena_.references(block) == 1) set_held(*node, false);
}

// If a node changes between idle and busy, its parent's busy_children changes, which may change the
// parent's own state, and so on up to the adapter node.
void DependencyTree::set_held(Node& changed, bool held) {
  Node* node = &changed;
  bool was_busy = node->busy();
  node->held = held;
  while (node->parent && node->busy() != was_busy) {
    Node* parent = node->parent;
    const bool parent_was_busy = parent->busy();
    if (node->busy()) {
      --idle_nodes_;
      idle_leaves_.erase(node->last_use);
      ++parent->busy_children;
    } else {
      ++idle_nodes_;
      node->last_use = ++uses_;
      if (node->children.empty()) idle_leaves_.emplace(node->last_use, node);
      --parent->busy_children;
    }
    node = parent;
    was_busy = parent_was_busy;
  }
}

void DependencyTree::remove(Node& node) {
  assert(node.children.empty() && !node.busy());
  Node* parent = node.parent;
  parent->children.back()->place = node.place;
  parent->children[node.place] = parent->children.back();
  parent->children.pop_back();
  if (parent->children.empty()) {
    if (!parent->parent) {
      adapters_.erase(Digest(parent->key));
    } else if (!parent->busy()) {
      idle_leaves_.emplace(parent->last_use, parent);
    }
  }
  idle_leaves_.erase(node.last_use);
  --idle_nodes_;
  by_block_[node.block] = nullptr;
  arena_.release(node.block);
  kv_nodes_.erase(Digest(node.key));
}

bool DependencyTree::evict_one() {
  if (idle_leaves_.empty()) return false;
  remove(*idle_leaves_.begin()->second);
  return true;
}

void DependencyTree::drop_adapter(const Digest& adapter) {
  const auto it = adapters_.find(adapter);
  if (it == adapters_.end()) return;
  std::vector<Node*> below = it->second.children;  // parents before their children
  for (size_t i = 0; i < below.size(); ++i) {
    const std::vector<Node*>& children = below[i]->children;
    below.insert(below.end(), children.begin(), children.end());
  }
  for (auto node = below.rbegin(); node != below.rend(); ++node) {
    if (!(*node)->busy()) remove(**node);
  }
}

}  // namespace valora::memory
