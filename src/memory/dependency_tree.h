// Index of cached KV blocks (FastLibra §4). Below the root is one node per adapter identity (the
// base model has one too), below these KV nodes of one block each. A KV node's key includes its
// parent's key, so a lookup never returns blocks of another adapter, another scale, other pixels or
// a reloaded name.
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

// The tree holds one reference on the block of every KV node. A node is held if its block has
// further references. Callers get these from match() or insert(), and must return them through
// release(), never to the arena directly: the tree counts evictable blocks by them. A held node may
// have a parent that is not held: if two sequences compute the same prefix, the later one keeps its
// private blocks, and its continuation is stored below the nodes of the first. Not thread-safe:
// only the engine thread uses it.
class DependencyTree {
 public:
  explicit DependencyTree(BlockArena& arena)
      : arena_(arena), by_block_(arena.total_blocks(), nullptr) {}
  DependencyTree(const DependencyTree&) = delete;
  DependencyTree& operator=(const DependencyTree&) = delete;

  // The blocks of the longest cached prefix of `keys` under `adapter`, in order. Each block gets a
  // reference, which the caller must release().
  std::vector<BlockId> match(const Digest& adapter, std::span<const Digest> keys);
  // What match() would return, without taking references: the number of blocks, and how many of
  // them are evictable now.
  struct Found {
    int32_t blocks = 0;
    int32_t evictable = 0;
  };
  Found find(const Digest& adapter, std::span<const Digest> keys) const;
  bool contains(const Digest& adapter, const Digest& key) const;
  // Stores `block` under keys.back(). The nodes of keys[0 … n-2] must exist and the caller must
  // hold the block, and keeps its reference. Returns false and stores nothing if a parent is
  // missing, the key exists already or the block belongs to a node.
  bool insert(const Digest& adapter, std::span<const Digest> keys, BlockId block);
  // Drops one reference on a block, whether or not it belongs to the tree.
  void release(BlockId block);
  // Removes the least recently used leaf that is not held, and frees its block. False if there is
  // none.
  bool evict_one();
  // Number of blocks that repeated calls of evict_one() would free.
  int32_t evictable_blocks() const { return idle_nodes_; }
  // Removes all nodes of an adapter identity except those that are held or have a held descendant.
  // Called if the adapter was unloaded or replaced.
  void drop_adapter(const Digest& adapter);

  // Number of KV nodes; adapter nodes are not counted.
  int32_t nodes() const { return static_cast<int32_t>(kv_nodes_.size()); }
  // Whether a KV node owns the block.
  bool owns(BlockId block) const { return by_block_[block] != nullptr; }
  // Checks the invariants. Returns an empty string, or the first violation. For tests.
  std::string check() const;

 private:
  struct Node {
    Node* parent = nullptr;  // null for an adapter node
    size_t place = 0;        // index in parent->children
    std::vector<Node*> children;
    int32_t busy_children = 0;
    Digest key;
    Digest adapter;
    BlockId block = kNoBlock;
    bool held = false;      // the block has references besides the tree's
    uint64_t last_use = 0;  // value of uses_ when it last became idle; unique

    // Held, or has a held descendant: must not be evicted.
    bool busy() const { return held || busy_children > 0; }
  };

  const Node* find_child(const Node& parent, const Digest& key) const;
  const Node* find_adapter(const Digest& adapter) const;
  void set_held(Node& changed, bool held);
  void remove(Node& node);  // an idle leaf
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
