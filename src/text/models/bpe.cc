#include "text/models/bpe.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "text/unicode.h"

namespace valora::text {
namespace {

constexpr uint32_t kNone = ~uint32_t{0};

// The symbols of one word as a linked list over an array; a merge keeps the left one.
class Word {
 public:
  Word(const std::vector<int32_t>& ids, const MergeTable& merges) : merges_(merges) {
    symbols_.reserve(ids.size());
    const auto count = static_cast<uint32_t>(ids.size());
    for (uint32_t i = 0; i < count; ++i) symbols_.push_back({ids[i], i - 1, i + 1 == count ? kNone : i + 1});
  }

  // The queue holds every pair that can merge now, and pairs that have since gone: n log n in all.
  void merge_all() {
    std::vector<Candidate> candidates;
    for (uint32_t i = 0; i + 1 < symbols_.size(); ++i)
      if (const Merge* merge = merge_at(i)) candidates.push_back(candidate(*merge, i));
    Queue queue(std::greater<>(), std::move(candidates));
    while (!queue.empty()) {
      const Candidate top = queue.top();
      queue.pop();
      const Merge* merge = merge_at(top.position);
      if (merge == nullptr || merge->result != top.result) continue;
      merge_with_next(top.position, merge->result);
      const uint32_t neighbours[] = {symbols_[top.position].previous, top.position};
      for (const uint32_t i : neighbours)
        if (const Merge* next = i == kNone ? nullptr : merge_at(i)) queue.push(candidate(*next, i));
    }
  }

  void append_ids(std::vector<int32_t>& ids) const {
    for (uint32_t i = symbols_.empty() ? kNone : 0; i != kNone; i = symbols_[i].next) ids.push_back(symbols_[i].id);
  }

 private:
  static constexpr int32_t kMerged = -1;
  struct Symbol {
    int32_t id;         // kMerged: it went into the one on its left
    uint32_t previous;  // kNone at the word's ends
    uint32_t next;
  };
  // Ordered by rank, then from left to right.
  struct Candidate {
    int32_t rank;
    uint32_t position;
    int32_t result;
    auto operator<=>(const Candidate&) const = default;
  };
  using Queue = std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>>;

  static Candidate candidate(const Merge& merge, uint32_t position) { return {merge.rank, position, merge.result}; }

  // The merge of symbol i with the one on its right, null if there is none.
  const Merge* merge_at(uint32_t i) const {
    const Symbol& symbol = symbols_[i];
    if (symbol.id == kMerged || symbol.next == kNone) return nullptr;
    return merges_.find(symbol.id, symbols_[symbol.next].id);
  }

  void merge_with_next(uint32_t i, int32_t result) {
    Symbol& right = symbols_[symbols_[i].next];
    symbols_[i].id = result;
    symbols_[i].next = right.next;
    right.id = kMerged;
    if (right.next != kNone) symbols_[right.next].previous = i;
  }

  const MergeTable& merges_;
  std::vector<Symbol> symbols_;
};

}  // namespace

void Bpe::tokenize(std::string_view piece, std::vector<int32_t>& ids) const {
  if (options_.ignore_merges) {
    if (const auto id = vocabulary_.find(piece)) {
      ids.push_back(*id);
      return;
    }
  }
  if (cache_.find(piece, ids)) return;
  const size_t begin = ids.size();
  Word word(character_ids(piece), merges_);
  word.merge_all();
  word.append_ids(ids);
  cache_.insert(piece, ids.data() + begin, ids.size() - begin);
}

std::vector<int32_t> Bpe::character_ids(std::string_view piece) const {
  std::vector<int32_t> ids;
  ids.reserve(piece.size());
  bool after_unknown = false;
  while (!piece.empty()) {
    const size_t length = decode_utf8(piece).length;
    const auto id = vocabulary_.find(piece.substr(0, length));
    if (id) ids.push_back(*id);
    else if (options_.unk_id && !(after_unknown && options_.fuse_unk)) ids.push_back(*options_.unk_id);
    after_unknown = !id;
    piece.remove_prefix(length);
  }
  return ids;
}

}  // namespace valora::text
