#include "text/models/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>

#include "base/text/unicode.h"

namespace valora::text {
namespace {

constexpr uint32_t kNone = ~uint32_t{0};

// The symbols of one word as a linked list in an array. A merge keeps the left symbol.
class Word {
 public:
  Word(const std::vector<int32_t>& ids, const MergeTable& merges) : merges_(merges) {
    symbols_.reserve(ids.size());
    const auto count = static_cast<uint32_t>(ids.size());
    for (uint32_t i = 0; i < count; ++i)
      symbols_.push_back({ids[i], i - 1, i + 1 == count ? kNone : i + 1});
  }

  // The queue holds all pairs that can merge now, plus stale pairs: O(n log n) in total.
  void merge_all() {
    std::vector<Candidate> candidates;
    for (uint32_t i = 0; i + 1 < symbols_.size(); ++i)
      if (const Merge* merge = merge_at(i)) candidates.push_back(candidate(*merge, i));
    Queue queue(std::greater<>(), std::move(candidates));
    while (!queue.empty()) {
      const Candidate top = queue.top();
      queue.pop();
      const uint32_t position = top.position();
      const Merge* merge = merge_at(position);
      if (merge == nullptr || merge->result != top.result) continue;
      merge_with_next(position, merge->result);
      const uint32_t neighbours[] = {symbols_[position].previous, position};
      for (const uint32_t i : neighbours)
        if (const Merge* next = i == kNone ? nullptr : merge_at(i)) queue.push(candidate(*next, i));
    }
  }

  void append_ids(std::vector<int32_t>& ids) const {
    for (uint32_t i = symbols_.empty() ? kNone : 0; i != kNone; i = symbols_[i].next)
      ids.push_back(symbols_[i].id);
  }

 private:
  static constexpr int32_t kMerged = -1;
  struct Symbol {
    int32_t id;         // kMerged: merged into the symbol on its left
    uint32_t previous;  // kNone at the word's ends
    uint32_t next;
  };
  struct Candidate {
    uint64_t order;  // by rank, then left to right: the rank is in the bits above the position
    int32_t result;
    uint32_t position() const { return static_cast<uint32_t>(order); }
    bool operator>(const Candidate& other) const { return order > other.order; }
  };
  using Queue = std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>>;

  static Candidate candidate(const Merge& merge, uint32_t position) {
    return {uint64_t{static_cast<uint32_t>(merge.rank)} << 32 | position, merge.result};
  }

  // The merge of symbol i with its right neighbour; null if there is none.
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

Bpe::Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options)
    : vocabulary_(std::move(vocabulary)), merges_(std::move(merges)), options_(options) {
  for (size_t c = 0; c < ascii_ids_.size(); ++c)
    ascii_ids_[c] = vocabulary_.find(std::string(1, static_cast<char>(c))).value_or(kNoToken);
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte)
    byte_ids_[byte] = vocabulary_.find(fmt::format("<0x{:02X}>", byte)).value_or(kNoToken);
}

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

int32_t Bpe::character_id(std::string_view character) const {
  if (character.size() == 1) return ascii_ids_[static_cast<uint8_t>(character[0])];
  return vocabulary_.find(character).value_or(kNoToken);
}

// Appends the ids of all bytes of the character, or of none.
bool Bpe::append_byte_ids(std::string_view character, std::vector<int32_t>& ids) const {
  const auto id = [&](char byte) { return byte_ids_[static_cast<uint8_t>(byte)]; };
  if (!std::ranges::all_of(character, [&](char byte) { return id(byte) != kNoToken; }))
    return false;
  for (const char byte : character) ids.push_back(id(byte));
  return true;
}

// An unknown token is held back, because it may fuse with the next ones, and is emitted before the
// next known character. Byte tokens do not flush it, so they come first, as in the reference.
std::vector<int32_t> Bpe::character_ids(std::string_view piece) const {
  std::vector<int32_t> ids;
  ids.reserve(piece.size());
  bool pending_unknown = false;
  const auto end_wait = [&] {
    if (pending_unknown) ids.push_back(*options_.unk_id);
    pending_unknown = false;
  };
  for (size_t length; !piece.empty(); piece.remove_prefix(length)) {
    length = decode_utf8(piece).length;
    const std::string_view character = piece.substr(0, length);
    if (const int32_t id = character_id(character); id != kNoToken) {
      end_wait();
      ids.push_back(id);
      continue;
    }
    if (options_.byte_fallback && append_byte_ids(character, ids)) continue;
    if (!options_.unk_id) continue;
    if (!options_.fuse_unk) end_wait();
    pending_unknown = true;
  }
  end_wait();
  return ids;
}

}  // namespace valora::text
