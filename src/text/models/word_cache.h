// A cache of words' ids. Bounded and thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace valora::text {

class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 64;
  static constexpr size_t kShards = 16;
  static constexpr size_t kWordsPerShard = 2048;

  // If the word is cached, appends its ids and returns true.
  bool find(std::string_view word, std::vector<int32_t>& ids) const;
  // Words longer than kMaxWordBytes are not cached. A full shard is cleared.
  void insert(std::string_view word, const int32_t* ids, size_t count);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<std::string, std::vector<int32_t>, Hash, std::equal_to<>> words;
  };

  std::array<Shard, kShards> shards_;
};

}  // namespace valora::text
