// Derives the merges of a SentencePiece vocabulary.
#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/text/unicode.h"
#include "text/gguf/tokenizer.h"

namespace valora::text {
namespace {

struct ScoredMerge {
  double score;
  size_t left_length, right_length;  // in characters
  size_t left, right;                // ids
};

// The end of each character of a text.
std::vector<size_t> character_ends(std::string_view text) {
  std::vector<size_t> ends;
  for (size_t at = 0; at < text.size();) ends.push_back(at += decode_utf8(text.substr(at)).length);
  return ends;
}

}  // namespace

Json merges_by_score(const std::vector<ScoredToken>& tokens) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < tokens.size(); ++id)
    if (tokens[id].merges) ids.emplace(tokens[id].text, id);
  std::vector<ScoredMerge> merges;
  for (const ScoredToken& token : tokens) {
    if (!token.merges) continue;
    const std::vector<size_t> ends = character_ends(token.text);
    const size_t first = merges.size();
    for (size_t i = 0; i + 1 < ends.size(); ++i) {
      const auto left = ids.find(token.text.substr(0, ends[i]));
      if (left == ids.end()) continue;
      const auto right = ids.find(token.text.substr(ends[i]));
      if (right == ids.end()) continue;
      merges.push_back({token.score, i + 1, ends.size() - i - 1, left->second, right->second});
    }
    std::sort(merges.begin() + static_cast<ptrdiff_t>(first), merges.end(),
              [](const ScoredMerge& a, const ScoredMerge& b) {
                return std::tie(a.left, a.right) < std::tie(b.left, b.right);
              });
  }
  std::ranges::stable_sort(merges, [](const ScoredMerge& a, const ScoredMerge& b) {
    return std::tie(a.score, a.left_length, a.right_length) >
           std::tie(b.score, b.left_length, b.right_length);
  });
  Json list = Json::array();
  for (const ScoredMerge& merge : merges)
    list.push_back({tokens[merge.left].text, tokens[merge.right].text});
  return list;
}

}  // namespace valora::text
