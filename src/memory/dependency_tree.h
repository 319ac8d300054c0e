// The dependency tree over adapters and KV blocks (FastLibra §4): the tier of each node, its
// dependencies, and if it may be evicted. Below the adapters are KV roots, one per identity; a root
// depends on each of its adapters. Below a root are KV nodes of one block each, by the chained
// digest of their content, so a lookup never returns blocks of another adapter, another scale,
// other pixels or a reloaded name.
//
// Invariants, which check() verifies:
//  - a KV node in the pool, or being filled, has its parent there, and, if dependencies are kept,
//    its adapters;
//  - a node that a sequence refers to is in the pool, and so are its ancestors;
//  - a node in flight has one move; a node in neither tier does not exist;
//  - each pool block belongs to one node, to a node's checkpoint, to sequences, or to the free
//  list;
//  - a node that has a checkpoint is in the pool.
// A failed allocation leaves all as it was: what adds to the tree makes room first, and what takes
// away needs none.
// Structure only: memory/pool.h decides and moves. Not thread-safe: only the engine thread uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/block_arena.h"
#include "memory/identity.h"
#include "memory/tree_nodes.h"

namespace valora::memory {

class DependencyTree {
 public:
  // arena: the pool. swap: the swap space for KV, maybe of no blocks. Both must outlive the tree.
  // dependencies: whether an adapter stays in the pool while KV blocks below it do.
  DependencyTree(BlockArena& arena, BlockArena& swap, bool dependencies);
  DependencyTree(const DependencyTree&) = delete;
  DependencyTree& operator=(const DependencyTree&) = delete;

  // Adapters. adapter() adds an absent node if there is none.
  AdapterNode& adapter(const AdapterNeed& need);
  AdapterNode* find_adapter(const Digest& digest);
  const AdapterNode* find_adapter(const Digest& digest) const;
  const std::unordered_map<Digest, AdapterNode>& adapters() const { return adapters_; }
  // Gives an absent adapter its blocks, which are being filled from now on.
  void begin_load(AdapterNode& node, std::vector<BlockId> blocks);
  void end_load(AdapterNode& node);
  // Frees the adapter's blocks. It must not be pinned, and evictable() or being loaded.
  void release_blocks(AdapterNode& node);
  // True if the adapter may leave the pool now.
  bool evictable(const AdapterNode& node) const;
  // Removes an absent adapter and the KV roots that depend on it, except if something of them is
  // busy. Returns whether all is gone.
  bool erase(AdapterNode& node);

  // KV nodes.
  KvRoot& root(const KvIdentity& identity);
  const KvRoot* find_root(const Digest& identity) const;
  KvNode* find(const KvRoot* root, const KvNode* parent, const Digest& key);
  KvNode* find_node(const Digest& key);
  // The root's node of this key if it is resident, else null.
  KvNode* find_resident(const KvRoot& root, const Digest& key);
  // The resident prefix of `keys`, in order.
  std::vector<KvNode*> resident_prefix(const KvRoot* root, std::span<const Digest> keys);
  // Adds a node, in the pool, under keys.back(), or returns the existing one. keys[0 … n-2] must be
  // in the pool, else null. If the node exists only in the swap space, the block joins it. Returns
  // null too if the block belongs to a node. The tree takes a reference on a block that it keeps.
  KvNode* insert(KvRoot& root, std::span<const Digest> keys, BlockId block);
  // The node that a pool block belongs to; null if there is none.
  KvNode* node_of(BlockId block) const { return by_block_[block]; }
  // Adds or drops a sequence's reference on a block, whether or not it belongs to a node. Returns
  // the node that became unused by it, if any.
  void hold(KvNode& node);
  KvNode* release(BlockId block);

  // Fills: the node is only in the swap space, its parent in the pool. Takes over one reference on
  // the block. cancel_fill() frees it.
  void begin_fill(KvNode& node, BlockId block);
  void end_fill(KvNode& node);
  void cancel_fill(KvNode& node);
  // Copies to the swap space: takes over one reference on the swap block.
  void begin_save(KvNode& node, BlockId swapped);
  void end_save(KvNode& node);
  void cancel_save(KvNode& node);
  // Frees the pool block of an idle leaf. A node that is not in the swap space is removed, with
  // those below it.
  void evict(KvNode& node);
  // Frees the swap block. A node that is only there is removed, with those below it.
  void unswap(KvNode& node);
  // Removes all nodes of the root that are not busy; the root too, if none is left.
  void clear(KvRoot& root);
  void erase_if_empty(KvRoot& root);

  void set_leaving(KvNode& node, bool leaving);

  // Checkpoints: states of sequences in pool blocks, each of a node in the pool, with which it
  // leaves at the latest. set_checkpoint() takes over one reference on each block; the node must
  // have none.
  void set_checkpoint(KvNode& node, std::vector<BlockId> blocks);
  void drop_checkpoint(KvNode& node);
  // The blocks of a node's checkpoint, for a sequence that reads it: they stay until it has
  // released them, whatever becomes of the node.
  std::vector<BlockId> hold_checkpoint(const KvNode& node);
  void release_checkpoint(std::vector<BlockId>& blocks);
  // True if no sequence reads it.
  bool idle_checkpoint(const KvNode& node) const;
  // The nodes that have one, in no order.
  std::span<KvNode* const> checkpoints() const { return checkpoints_; }

  // Idle KV nodes without children in the pool, leaving ones included. In no order.
  std::span<KvNode* const> idle_leaves() const { return leaves_; }
  // By swap block; null: free.
  std::span<KvNode* const> by_swap_block() const { return by_swap_; }

  struct Counts {
    int32_t idle_kv = 0;              // pool blocks of idle KV nodes
    int32_t leaving = 0;              // of these, of leaving nodes
    int32_t kv = 0;                   // pool blocks of KV nodes
    int32_t held_kv = 0;              // of these, of nodes that sequences refer to
    int32_t adapter_blocks = 0;       // pool blocks of adapters
    int32_t idle_adapter_blocks = 0;  // of these, of adapters that are neither pinned nor loading
    int32_t adapters = 0;             // adapters in the pool
    int32_t checkpoint_blocks = 0;    // pool blocks of nodes' checkpoints
    int32_t idle_checkpoint_blocks = 0;  // of these, of those that no sequence reads
  };
  const Counts& counts() const { return counts_; }
  // Pool blocks of KV nodes that no request can use, because an adapter is absent.
  int32_t invalid_kv() const;
  size_t kv_nodes() const { return kv_nodes_.size(); }
  // Pins of an adapter are changed here, to keep the counts.
  void pin(AdapterNode& node, int step);
  void keep(AdapterNode& node, bool kept);

  // Empty, or the first violation. For tests.
  std::string check() const;

 private:
  // dependency_tree.cc
  template <typename Change>
  void change(KvNode& node, Change&& apply);
  void relist(KvNode& node);
  void count_presence(KvNode& node, int step);
  void leave_pool(KvNode& node);
  void drop_copy(KvNode& node);

  // dependency_tree_removal.cc
  void remove_below(KvNode& node);
  void remove(KvNode& node);
  void erase_root(KvRoot& root);

  // dependency_tree_adapters.cc
  template <typename Change>
  void change(AdapterNode& node, Change&& apply);

  // dependency_tree_check.cc
  std::string check_node(const KvNode& node) const;
  std::string check_root(const KvRoot& root) const;
  std::string check_adapter(const AdapterNode& node) const;
  std::string check_checkpoints() const;

  BlockArena& arena_;
  BlockArena& swap_;
  const bool dependencies_;
  std::unordered_map<Digest, AdapterNode> adapters_;
  std::unordered_map<Digest, KvRoot> roots_;
  std::unordered_map<Digest, KvNode> kv_nodes_;
  std::vector<KvNode*> by_block_, by_swap_;
  std::vector<KvNode*> leaves_;
  std::vector<KvNode*> checkpoints_;
  std::vector<KvNode*> by_checkpoint_;  // by the first block of a checkpoint
  Counts counts_;
};

}  // namespace valora::memory
