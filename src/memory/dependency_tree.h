// The tree over cached state (FastLibra §4): root → one node an adapter identity (and one for the base
// model) → KV nodes of one block each. A KV node's key chains its parent's, so nothing is ever found
// under another adapter, another scale, other pixels or a reloaded name.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/digest.h"
#include "memory/block_arena.h"

namespace valora::memory {

// Holds one reference on the block of every KV node. Not thread-safe: the engine thread owns it.
class DependencyTree {
 public:
  explicit DependencyTree(BlockArena& arena) : arena_(arena) {}

  // The blocks of the longest cached chain keys[0], keys[1], … under `adapter`; each gets a reference
  // for the caller, and the chain counts as used now.
  std::vector<BlockId> match(const Digest& adapter, std::span<const Digest> keys);
  // Records keys.back() → block under the chain keys[0 … n-2], which must be present (else nothing is
  // recorded). A key already present keeps its own block. True if recorded.
  bool insert(const Digest& adapter, std::span<const Digest> keys, BlockId block);
  // Drops the least recently used leaf whose block nobody else holds; false when there is none.
  bool evict_one();
  // Blocks that eviction could free in full (leaf after leaf).
  int32_t evictable_blocks() const;
  // Drops every node under an adapter identity that no request holds (it was unloaded or reloaded).
  void drop_adapter(const Digest& adapter);

  int32_t nodes() const;
  // Empty when the invariants of DESIGN §5 hold, else the first violation. Tests call it every step.
  std::string check() const;

 private:
  // (helper structures are the implementer's)
  BlockArena& arena_;
};

}  // namespace valora::memory
