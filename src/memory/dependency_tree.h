// The tree over cached state (FastLibra §4): root → one node an adapter identity (and one for the
// base model) → KV nodes of one block each. A KV node's key chains its parent's, so nothing is ever
// found under another adapter, another scale, other pixels or a reloaded name.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/digest.h"
#include "memory/block_arena.h"

namespace valora::memory {

// Holds one reference on the block of every KV node. Whoever holds another one holds the node:
// references on blocks of the tree come from match() (or were the inserter's own) and go back
// through release(), never straight to the arena, so that the tree always knows what is evictable.
// A node can be held while its parent is not: where two sequences computed the same prefix, the
// later one keeps private blocks and its continuation hangs below the first one's. Not thread-safe:
// the engine thread owns it.
class DependencyTree {
 public:
  explicit DependencyTree(BlockArena& arena)
      : arena_(arena), by_block_(arena.total_blocks(), nullptr) {}
  DependencyTree(const DependencyTree&) = delete;
  DependencyTree& operator=(const DependencyTree&) = delete;

  // The blocks of the longest cached chain keys[0], keys[1], … under `adapter`; each gets a
  // reference for the caller, and the chain counts as used until it is released.
  std::vector<BlockId> match(const Digest& adapter, std::span<const Digest> keys);
  // What match() would find, without taking it: blocks in all, and those evictable until then.
  struct Found {
    int32_t blocks = 0;
    int32_t evictable = 0;
  };
  Found find(const Digest& adapter, std::span<const Digest> keys) const;
  bool contains(const Digest& adapter, const Digest& key) const;
  // Records keys.back() → block under the chain keys[0 … n-2], which must be present (else nothing
  // is recorded). The caller holds the block, and goes on holding it. A key already present keeps
  // its own block. True if recorded.
  bool insert(const Digest& adapter, std::span<const Digest> keys, BlockId block);
  // Gives back one reference on a block, of the tree or not.
  void release(BlockId block);
  // Drops the least recently used leaf whose block nobody else holds; false when there is none.
  bool evict_one();
  // Blocks that eviction could free in full (leaf after leaf).
  int32_t evictable_blocks() const { return idle_nodes_; }
  // Drops every node under an adapter identity that no request needs (it was unloaded or reloaded).
  void drop_adapter(const Digest& adapter);

  // KV nodes; adapters' nodes are not counted.
  int32_t nodes() const { return static_cast<int32_t>(kv_nodes_.size()); }
  // Whether the block is a node's.
  bool owns(BlockId block) const { return by_block_[block] != nullptr; }
  // Empty when the invariants of DESIGN §5 hold, else the first violation. Tests call it every
  // step.
  std::string check() const;

 private:
  struct Node {
    Node* parent = nullptr;  // none: an adapter's node
    size_t place = 0;        // in parent->children
    std::vector<Node*> children;
    int32_t busy_children = 0;
    Digest key;
    Digest adapter;
    BlockId block = kNoBlock;
    bool held = false;      // somebody beside the tree holds the block
    uint64_t last_use = 0;  // when it last became idle; unique

    // It or something below it is held, so it can't leave.
    bool busy() const { return held || busy_children > 0; }
  };

  const Node* find_child(const Node& parent, const Digest& key) const;
  const Node* find_adapter(const Digest& adapter) const;
  void set_held(Node& node, bool held);
  void remove(Node& idle_leaf);
  std::string check_node(const Digest& key, const Node& node) const;

  BlockArena& arena_;
  std::unordered_map<Digest, Node> adapters_;  // only those with children
  std::unordered_map<Digest, Node> kv_nodes_;
  std::vector<Node*> by_block_;
  std::map<uint64_t, Node*> idle_leaves_;  // by last use
  int32_t idle_nodes_ = 0;                 // KV nodes that are not busy
  uint64_t uses_ = 0;
};

}  // namespace valora::memory
