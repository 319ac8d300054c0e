// KV blocks of sequences: allocation, automatic prefix reuse, release. Between scheduler and arena.
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

// A visual item's place in a sequence's tokens: its pixels are part of the identity of the blocks
// it touches.
struct MediaSpan {
  int token_begin = 0;
  int tokens = 0;
  Digest digest;
};

// What identifies a sequence's KV content beside its tokens.
struct KvIdentity {
  Digest adapter;  // of the adapters in use with their scales; the base model's is Digest{}
  std::vector<MediaSpan> media;  // ascending, not overlapping
};

// The chained keys of all full blocks of `tokens`: key_i = H(key_{i-1}, the block's token ids, and
// for each media span touching the block its digest, offset and length); key_{-1} = H(adapter).
// `known` holds the keys of a shorter prefix of the same sequence, and is extended.
void extend_block_keys(const KvIdentity& identity, std::span<const int32_t> tokens,
                       std::vector<Digest>& known);

// One sequence's blocks, in order; block i holds tokens [16 i, 16 i + 16). Only blocks that are not
// full are ever written, and these are always private: what lies in the tree never changes.
struct BlockTable {
  std::vector<BlockId> blocks;
  int committed = 0;  // leading blocks already offered to the tree
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

  // Fills an empty table with the cached prefix of the sequence and returns the tokens it covers,
  // at most tokens-1 (something must be computed to yield logits), in whole blocks.
  int reuse_prefix(BlockTable& table, const Digest& adapter, std::span<const Digest> keys,
                   int tokens);
  // How many of available_blocks() reuse_prefix() and reserve() of an empty table would use up.
  // Changes nothing.
  int32_t blocks_to_start(const Digest& adapter, std::span<const Digest> keys, int tokens) const;
  // Grows the table to hold `tokens` tokens, evicting unused cached blocks where needed. False (and
  // nothing changed) when they are not to be had.
  bool reserve(BlockTable& table, int tokens);
  // Offers the blocks that are full after `computed` tokens to the tree. A key that another
  // sequence offered first stays with that one's block; this table keeps its own.
  void commit(BlockTable& table, const Digest& adapter, std::span<const Digest> keys, int computed);
  void release(BlockTable& table);
  void drop_adapter(const Digest& adapter) { tree_.drop_adapter(adapter); }

  bool prefix_caching() const { return prefix_caching_; }
  int32_t total_blocks() const { return arena_.total_blocks(); }
  // Tokens that one sequence can have at most.
  int64_t max_tokens() const { return int64_t{total_blocks()} * kBlockTokens; }
  // Blocks that reserve() could hand out now: free ones and cached ones that nobody uses.
  int32_t available_blocks() const { return arena_.free_blocks() + tree_.evictable_blocks(); }
  // Share of blocks held by sequences, 0 … 1.
  double usage() const { return 1.0 - double(available_blocks()) / std::max(1, total_blocks()); }
  const KvCacheStats& stats() const { return stats_; }
  // Given the tables of all sequences: empty when every block belongs to tables, a node or the free
  // list, and all counts add up; else the first violation.
  std::string check(std::span<const BlockTable* const> tables) const;

 private:
  BlockArena arena_;
  DependencyTree tree_;
  bool prefix_caching_;
  KvCacheStats stats_;
};

}  // namespace valora::memory
