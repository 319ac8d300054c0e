#include "text/models/word_cache.h"

namespace valora::text {

bool WordCache::find(std::string_view word, std::vector<int32_t>& ids) const {
  if (word.size() > kMaxWordBytes) return false;
  const Shard& shard = shards_[Hash{}(word) % kShards];
  const std::lock_guard lock(shard.mutex);
  const auto it = shard.words.find(word);
  if (it == shard.words.end()) return false;
  ids.insert(ids.end(), it->second.begin(), it->second.end());
  return true;
}

void WordCache::insert(std::string_view word, const int32_t* ids, size_t count) {
  if (word.size() > kMaxWordBytes) return;
  Shard& shard = shards_[Hash{}(word) % kShards];
  const std::lock_guard lock(shard.mutex);
  if (shard.words.size() >= kWordsPerShard) shard.words.clear();
  shard.words.try_emplace(std::string(word), ids, ids + count);
}

}  // namespace valora::text
