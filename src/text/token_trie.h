// Finds the first occurrence of any of a set of texts; the longest one if several start there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace valora::text {

class TokenTrie {
 public:
  struct Match {
    size_t begin;
    size_t end;
    int32_t id;
  };

  // A text inserted twice keeps its first id.
  void insert(std::string_view text, int32_t id);
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  static constexpr int32_t kNoToken = -1;
  std::optional<Match> longest_at(std::string_view text, size_t begin) const;

  std::vector<int32_t> node_ids_ = {
      kNoToken};  // the token that ends at each node; node 0 is the root
  std::unordered_map<uint64_t, uint32_t> edges_;  // node << 8 | byte → node
  std::array<bool, 256> starts_ = {};             // first bytes of all texts
};

}  // namespace valora::text
