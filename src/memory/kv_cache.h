// KV cache manager: block tables of sequences, with automatic reuse of cached prefixes. Not
// thread-safe: only the engine thread uses it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "memory/block_arena.h"
#include "memory/dependency_tree.h"

namespace valora::memory {

// An image or video among a sequence's tokens. The digest of its pixels is part of the keys of the
// blocks that it overlaps.
struct MediaSpan {
  int token_begin = 0;
  int tokens = 0;
  Digest digest;
};

// What determines a sequence's KV content besides its token ids.
struct KvIdentity {
  Digest adapter;                // of the adapters and their scales; Digest{} for the base model
  std::vector<MediaSpan> media;  // ascending, not overlapping
};

// Computes the keys of all full blocks of `tokens`: key_i = H(key_{i-1}, token ids of block i, and
// per overlapping media span its digest, offset and length), with key_{-1} = H(adapter). `known`
// holds the keys of a prefix of the sequence, and is extended.
void extend_block_keys(const KvIdentity& identity, std::span<const int32_t> tokens,
                       std::vector<Digest>& known);

// The blocks of one sequence: block i holds tokens [16 i, 16 i + 16). Only blocks that are not full
// are written, and these are always private: blocks in the tree never change.
struct BlockTable {
  std::vector<BlockId> blocks;
  int committed = 0;  // leading blocks that commit() has processed
};

struct KvCacheStats {
  uint64_t queried_tokens = 0;
  uint64_t hit_tokens = 0;
};

class KvCache {
 public:
  KvCache(int32_t blocks, bool prefix_caching);
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  // Fills an empty table with the cached prefix of the sequence. Returns the number of tokens it
  // covers: whole blocks, at most tokens - 1, because the last token must be computed to yield
  // logits.
  int reuse_prefix(BlockTable& table, const Digest& adapter, std::span<const Digest> keys,
                   int tokens);
  // How many of the available_blocks() reuse_prefix() and reserve() would take for an empty table.
  // Changes nothing.
  int32_t blocks_to_start(const Digest& adapter, std::span<const Digest> keys, int tokens) const;
  // Grows the table to `tokens` tokens, and evicts cached blocks if needed. Returns false and
  // changes nothing if available_blocks() is too small.
  bool reserve(BlockTable& table, int tokens);
  // Stores the blocks that are full after `computed` tokens in the tree. If another sequence has
  // stored a key first, its block stays there, and this table keeps its own private one.
  void commit(BlockTable& table, const Digest& adapter, std::span<const Digest> keys, int computed);
  void release(BlockTable& table);
  void drop_adapter(const Digest& adapter) { tree_.drop_adapter(adapter); }

  bool prefix_caching() const { return prefix_caching_; }
  int32_t total_blocks() const { return arena_.total_blocks(); }
  // Upper bound of the tokens of one sequence.
  int64_t max_tokens() const { return int64_t{total_blocks()} * kBlockTokens; }
  // Blocks that reserve() can allocate now: free blocks and evictable cached ones.
  int32_t available_blocks() const { return arena_.free_blocks() + tree_.evictable_blocks(); }
  // Share of blocks held by sequences, in 0 … 1.
  double usage() const { return 1.0 - double(available_blocks()) / std::max(1, total_blocks()); }
  const KvCacheStats& stats() const { return stats_; }
  // Checks arena and tree, and that the reference counts equal those of `tables` (the tables of all
  // sequences) and the tree. Returns an empty string, or the first violation. For tests.
  std::string check(std::span<const BlockTable* const> tables) const;

 private:
  BlockArena arena_;
  DependencyTree tree_;
  bool prefix_caching_;
  KvCacheStats stats_;
};

}  // namespace valora::memory
