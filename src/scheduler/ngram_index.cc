#include "scheduler/ngram_index.h"

#include <algorithm>

namespace valora::scheduler {
namespace {

// Different runs may have one hash: callers compare tokens.
uint64_t hash_of(std::span<const int32_t> run) {
  uint64_t hash = 0;
  for (const int32_t token : run)
    hash = (hash ^ static_cast<uint32_t>(token)) * 0x9E3779B97F4A7C15U + (hash >> 29);
  return hash;
}

// How many tokens before `end` are the last ones of the sequence, up to `most`.
size_t matching(std::span<const int32_t> tokens, size_t end, size_t most) {
  size_t same = 0;
  while (same < std::min(most, end) && tokens[end - 1 - same] == tokens[tokens.size() - 1 - same])
    ++same;
  return same;
}

}  // namespace

void NgramIndex::add_until(std::span<const int32_t> tokens, size_t end, size_t least) {
  for (size_t next = std::max(previous_end_.size(), least); next < end; ++next) {
    previous_end_.resize(next + 1);
    uint32_t& last = last_end_[hash_of(tokens.subspan(next - least, least))];
    previous_end_[next] = last;
    last = static_cast<uint32_t>(next);
  }
}

size_t NgramIndex::continuation(std::span<const int32_t> tokens, int longest, int least) {
  const auto run = static_cast<size_t>(least), most = static_cast<size_t>(longest);
  if (tokens.size() <= run) return 0;
  add_until(tokens, tokens.size(), run);
  const auto found = last_end_.find(hash_of(tokens.last(run)));
  size_t best = run - 1, best_end = 0;
  for (size_t end = found == last_end_.end() ? 0 : found->second; end > 0;
       end = previous_end_[end]) {
    const size_t same = matching(tokens, end, most);
    if (same <= best) continue;
    best = same;
    best_end = end;
    if (best >= most) break;
  }
  return best_end;
}

}  // namespace valora::scheduler
