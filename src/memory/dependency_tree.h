// The dependency tree over adapters and KV blocks (FastLibra §4): the tier of each node, its
// dependencies, and whether it may be evicted. Below the adapters are KV roots, one per identity; a
// root depends on each of its adapters. Below a root are KV nodes of one block each, keyed by the
// chained digest of their content, so a lookup never returns blocks computed with another adapter,
// another scale, other pixels or a reloaded name.
//
// Invariants, which check() verifies:
//  - a KV node in the pool, or being filled, has its parent in the pool and, with dependencies, its
//    adapters;
//  - a node that a sequence refers to is in the pool, with all its ancestors;
//  - a node in flight has exactly one move; a node in neither tier does not exist;
//  - each pool block belongs to one node, to a node's checkpoint, to sequences, or to the free
//    list;
//  - a node with a checkpoint is in the pool.
// A failed allocation changes nothing: operations that add to the tree reserve memory first, and
// operations that remove need none.
// Structure only: memory/pool.h makes the decisions and the moves. Not thread-safe: only the engine
// thread uses it.
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
  // arena: the pool. swap: the swap space for KV, possibly without blocks. Both must outlive the
  // tree. dependencies: if true, an adapter stays in the pool as long as KV blocks below it do.
  DependencyTree(BlockArena& arena, BlockArena& swap, bool dependencies);
  DependencyTree(const DependencyTree&) = delete;
  DependencyTree& operator=(const DependencyTree&) = delete;

  // Adapters. adapter() adds the node, as absent, if it does not exist.
  AdapterNode& adapter(const AdapterNeed& need);
  AdapterNode* find_adapter(const Digest& digest);
  const AdapterNode* find_adapter(const Digest& digest) const;
  const std::unordered_map<Digest, AdapterNode>& adapters() const { return adapters_; }
  // Assigns blocks to an absent adapter; they count as being filled until end_load().
  void begin_load(AdapterNode& node, std::vector<BlockId> blocks);
  void end_load(AdapterNode& node);
  // Frees the adapter's blocks. It must not be pinned, and must be evictable() or loading.
  void release_blocks(AdapterNode& node);
  // True if the adapter may leave the pool now.
  bool evictable(const AdapterNode& node) const;
  // Removes an absent adapter and the KV roots that depend on it, except parts that are busy.
  // Returns true if everything is gone.
  bool erase(AdapterNode& node);

  // KV nodes.
  KvRoot& root(const KvIdentity& identity);
  const KvRoot* find_root(const Digest& identity) const;
  KvNode* find(const KvRoot* root, const KvNode* parent, const Digest& key);
  KvNode* find_node(const Digest& key);
  // The root's node with this key if it is resident, or else null.
  KvNode* find_resident(const KvRoot& root, const Digest& key);
  // The resident prefix of `keys`, in order.
  std::vector<KvNode*> resident_prefix(const KvRoot* root, std::span<const Digest> keys);
  // Adds a node in the pool under keys.back(), or returns the existing one. If the node is only in
  // the swap space, the block becomes its pool block. Returns null if keys[0 … n-2] are not all in
  // the pool or the block already belongs to a node. The tree takes a reference to a block that it
  // keeps.
  KvNode* insert(KvRoot& root, std::span<const Digest> keys, BlockId block);
  // The node that owns a pool block; null if there is none.
  KvNode* node_of(BlockId block) const { return by_block_[block]; }
  // Adds or drops a sequence's reference to a block, which need not belong to a node. release()
  // returns the node that became unused, if any.
  void hold(KvNode& node);
  KvNode* release(BlockId block);

  // Fills: the node is only in the swap space and its parent in the pool. begin_fill() takes over
  // one reference to the block; cancel_fill() frees it.
  void begin_fill(KvNode& node, BlockId block);
  void end_fill(KvNode& node);
  void cancel_fill(KvNode& node);
  // Saves to the swap space. begin_save() takes over one reference to the swap block.
  void begin_save(KvNode& node, BlockId swapped);
  void end_save(KvNode& node);
  void cancel_save(KvNode& node);
  // Frees the pool block of an idle leaf. If the node has no swap block, it is removed with
  // everything below it.
  void evict(KvNode& node);
  // Frees the swap block. If the node is not in the pool either, it is removed with everything
  // below it.
  void unswap(KvNode& node);
  // Removes all nodes of the root that are not busy, and the root if none is left.
  void clear(KvRoot& root);
  void erase_if_empty(KvRoot& root);

  void set_leaving(KvNode& node, bool leaving);

  // Checkpoints: states of sequences in pool blocks. Each belongs to a node in the pool and leaves
  // the pool no later than that node. set_checkpoint() takes over one reference to each block; the
  // node must not have a checkpoint yet.
  void set_checkpoint(KvNode& node, std::vector<BlockId> blocks);
  void drop_checkpoint(KvNode& node);
  // References the blocks of a node's checkpoint for a sequence that reads it. They stay until
  // release_checkpoint(), whatever happens to the node.
  std::vector<BlockId> hold_checkpoint(const KvNode& node);
  void release_checkpoint(std::vector<BlockId>& blocks);
  // True if no sequence is reading the checkpoint.
  bool idle_checkpoint(const KvNode& node) const;
  // The nodes with a checkpoint, in no particular order.
  std::span<KvNode* const> checkpoints() const { return checkpoints_; }

  // Idle KV nodes without children in the pool, including nodes marked as leaving; in no particular
  // order.
  std::span<KvNode* const> idle_leaves() const { return leaves_; }
  // Indexed by swap block; null: free.
  std::span<KvNode* const> by_swap_block() const { return by_swap_; }

  struct Counts {
    int32_t idle_kv = 0;                 // pool blocks of idle KV nodes
    int32_t leaving = 0;                 // idle_kv of nodes marked as leaving
    int32_t kv = 0;                      // pool blocks of KV nodes
    int32_t held_kv = 0;                 // kv of nodes that sequences refer to
    int32_t adapter_blocks = 0;          // pool blocks of adapters
    int32_t idle_adapter_blocks = 0;     // adapter_blocks of adapters neither pinned nor loading
    int32_t adapters = 0;                // adapters in the pool
    int32_t checkpoint_blocks = 0;       // pool blocks of nodes' checkpoints
    int32_t idle_checkpoint_blocks = 0;  // checkpoint_blocks that no sequence reads
  };
  const Counts& counts() const { return counts_; }
  // Pool blocks of KV nodes that no request can use because an adapter is absent.
  int32_t invalid_kv() const;
  size_t kv_nodes() const { return kv_nodes_.size(); }
  // Changes an adapter's pins or its `kept` flag, and updates the counts.
  void pin(AdapterNode& node, int step);
  void keep(AdapterNode& node, bool kept);

  // Returns an empty string, or the first violation. For tests.
  std::string check() const;

 private:
  template <typename Change>
  void change(KvNode& node, Change&& apply);
  void update_lists(KvNode& node);
  void update_presence(KvNode& node, int step);
  void remove_from_pool(KvNode& node);
  void drop_copy(KvNode& node);

  // Removal.
  void remove_below(KvNode& node);
  void remove(KvNode& node);
  void erase_root(KvRoot& root);

  // Adapters.
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
  std::vector<KvNode*> by_checkpoint_;  // indexed by a checkpoint's first block
  Counts counts_;
};

}  // namespace valora::memory
