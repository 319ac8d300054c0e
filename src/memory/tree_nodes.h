// The nodes of the dependency tree (FastLibra §4): adapters, KV roots, and KV blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/digest.h"
#include "base/result.h"
#include "memory/block_arena.h"
#include "memory/visit_window.h"

namespace valora::memory {

enum class Flight : uint8_t {
  kNone,
  kIn,   // its pool blocks are being filled
  kOut,  // its content is being copied to the swap space; it stays usable
};

// Common to adapter and KV nodes.
struct TreeNode {
  Digest key;
  VisitWindow visits;         // by requests
  uint32_t uses = 0;          // visits ever
  TimePoint last_use{};       // time of the last visit, or of the end of the last use
  TimePoint awaited_until{};  // a waiting request asked for it: evicted last until then
  TimePoint rests_until{};    // the swapper does not move it before then; set after each move
  Flight flight = Flight::kNone;
  uint64_t move = 0;  // id of the move in flight; 0: none
};

struct KvRoot;

// An adapter, keyed by the digest of its content. Its second tier is its file.
struct AdapterNode : TreeNode {
  int32_t size = 0;              // blocks
  std::vector<BlockId> blocks;   // in the pool, or being filled; empty: absent
  int32_t pins = 0;              // by running requests and by waiting ones with a claim
  bool kept = false;             // never evicted
  bool forgotten = false;        // removed when its last pin is dropped
  int32_t present_roots = 0;     // KV roots that depend on it and have blocks in the pool
  std::vector<KvRoot*> roots;    // KV roots that depend on it
  std::optional<Error> failure;  // of the last load, until the last pin is dropped

  bool present() const { return !blocks.empty(); }
  bool resident() const { return present() && flight != Flight::kIn; }
  bool pinned() const { return pins > 0 || kept; }
};

struct KvNode;

// The KV cache of one identity: adapters with their scales.
struct KvRoot {
  Digest identity;
  std::vector<AdapterNode*> adapters;
  std::vector<KvNode*> children;
  int32_t present_children = 0;
  int32_t blocks = 0;  // pool blocks of its nodes

  // True if requests can use its nodes' blocks now.
  bool usable() const {
    for (const AdapterNode* adapter : adapters)
      if (!adapter->resident()) return false;
    return true;
  }
};

// One KV block, keyed by its chained digest. It is in the pool, in the swap space, or both.
struct KvNode : TreeNode {
  KvRoot* root = nullptr;
  KvNode* parent = nullptr;  // null: the first block of a sequence
  size_t place = 0;          // index among its siblings
  std::vector<KvNode*> children;
  int32_t present_children = 0;
  int32_t busy_children = 0;
  BlockId block = kNoBlock;    // in the pool, or being filled
  BlockId swapped = kNoBlock;  // in the swap space, or being written there
  bool held = false;           // sequences refer to its pool block
  bool leaving = false;        // leaves the pool once its content is in the swap space
  bool broken = false;         // its fill failed: removed once nothing below it is in the pool
  bool shared = false;         // sequences branched below it
  uint32_t turn = 1;           // the turn of the conversation that last used it, if not shared
  bool unreadable = false;     // its last read failed: requests recompute it
  int32_t leaf = -1;           // index in DependencyTree::idle_leaves()
  // The state after its last token, in pool blocks; empty: none. Never changes.
  std::vector<BlockId> checkpoint;
  int32_t checkpoint_place = -1;  // index in DependencyTree::checkpoints()

  bool present() const { return block != kNoBlock; }
  bool resident() const { return present() && flight != Flight::kIn; }
  bool saved() const { return swapped != kNoBlock && flight != Flight::kOut; }
  // Must stay in the pool: in use, being filled, or an ancestor of such a node.
  bool busy() const { return held || flight == Flight::kIn || busy_children > 0; }
  bool idle() const { return resident() && !busy(); }
};

}  // namespace valora::memory
