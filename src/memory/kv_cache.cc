#include "memory/kv_cache.h"

#include <fmt/format.h>

#include <cassert>

namespace valora::memory {
namespace {

// The keys that reuse_prefix() may match: at least one token must remain to be computed.
std::span<const Digest> reusable(std::span<const Digest> keys, int tokens) {
  return keys.first(std::min<size_t>(keys.size(), std::max(0, tokens - 1) / kBlockTokens));
}

}  // namespace

KvCache::KvCache(int32_t blocks, bool prefix_caching)
    : arena_(blocks), tree_(arena_), prefix_caching_(prefix_caching) {}

int KvCache::reuse_prefix(BlockTable& table, const Digest& adapter, std::span<const Digest> keys,
                          int tokens) {
  assert(table.blocks.empty());
  if (!prefix_caching_) return 0;
  table.blocks = tree_.match(adapter, reusable(keys, tokens));
  table.committed = static_cast<int>(table.blocks.size());
  const int cached = table.committed * kBlockTokens;
  stats_.queried_tokens += tokens;
  stats_.hit_tokens += cached;
  return cached;
}

int32_t KvCache::blocks_to_start(const Digest& adapter, std::span<const Digest> keys,
                                 int tokens) const {
  DependencyTree::Found found;
  if (prefix_caching_) found = tree_.find(adapter, reusable(keys, tokens));
  return blocks_for(tokens) - found.blocks + found.evictable;
}

bool KvCache::reserve(BlockTable& table, int tokens) {
  const int32_t missing = blocks_for(tokens) - static_cast<int32_t>(table.blocks.size());
  if (missing > available_blocks()) return false;
  while (arena_.free_blocks() < missing) tree_.evict_one();
  for (int32_t i = 0; i < missing; ++i) table.blocks.push_back(*arena_.allocate());
  return true;
}

void KvCache::commit(BlockTable& table, const Digest& adapter, std::span<const Digest> keys,
                     int computed) {
  if (!prefix_caching_) return;
  const int full = std::min(computed / kBlockTokens, static_cast<int>(keys.size()));
  if (full <= table.committed) return;
  // Another sequence may have stored the preceding keys first, and its blocks may be evicted by
  // now: store this table's own blocks instead.
  int first = table.committed;
  while (first > 0 && !tree_.contains(adapter, keys[first - 1])) --first;
  for (int i = first; i < full; ++i) tree_.insert(adapter, keys.first(i + 1), table.blocks[i]);
  table.committed = full;
}

void KvCache::release(BlockTable& table) {
  for (BlockId block : table.blocks) tree_.release(block);
  table = {};
}

std::string KvCache::check(std::span<const BlockTable* const> tables) const {
  if (std::string error = arena_.check(); !error.empty()) return error;
  if (std::string error = tree_.check(); !error.empty()) return error;
  std::vector<int32_t> expected(arena_.total_blocks(), 0);
  for (const BlockTable* table : tables) {
    if (table->committed < 0 || table->committed > static_cast<int>(table->blocks.size())) {
      return "a table has committed more blocks than it has";
    }
    for (BlockId block : table->blocks) ++expected[block];
  }
  int32_t in_use = 0;
  for (BlockId block = 0; block < arena_.total_blocks(); ++block) {
    in_use += expected[block] > 0 ? 1 : 0;
    expected[block] += tree_.owns(block) ? 1 : 0;
    if (arena_.references(block) != expected[block]) {
      return fmt::format("block {} has {} references instead of {}", block,
                         arena_.references(block), expected[block]);
    }
  }
  if (in_use + available_blocks() > arena_.total_blocks())
    return "blocks in use are counted as available";
  return {};
}

}  // namespace valora::memory
