#include "text/token_trie.h"

namespace valora::text {
namespace {

uint64_t edge(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<uint8_t>(byte); }

}  // namespace

void TokenTrie::insert(std::string_view text, int32_t id) {
  if (text.empty()) return;
  starts_[static_cast<uint8_t>(text[0])] = true;
  uint32_t node = 0;
  for (const char byte : text) {
    const auto [it, is_new] =
        edges_.try_emplace(edge(node, byte), static_cast<uint32_t>(node_ids_.size()));
    if (is_new) node_ids_.push_back(kNoToken);
    node = it->second;
  }
  if (node_ids_[node] == kNoToken) node_ids_[node] = id;
}

std::optional<TokenTrie::Match> TokenTrie::find(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<uint8_t>(text[begin])]) continue;
    if (const auto match = longest_at(text, begin)) return match;
  }
  return std::nullopt;
}

std::optional<TokenTrie::Match> TokenTrie::longest_at(std::string_view text, size_t begin) const {
  std::optional<Match> longest;
  uint32_t node = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    const auto it = edges_.find(edge(node, text[i]));
    if (it == edges_.end()) break;
    node = it->second;
    if (node_ids_[node] != kNoToken) longest = {begin, i + 1, node_ids_[node]};
  }
  return longest;
}

}  // namespace valora::text
