#include "scheduler/proposer.h"

#include <algorithm>

namespace valora::scheduler {

// For each earlier position: how many tokens before it match the end of the sequence. On the
// reversed sequence this is the Z function: z[i] is the length of the longest common prefix of the
// sequence and its suffix from i.
size_t find_continuation(std::span<const int32_t> tokens, int longest, int least) {
  const size_t count = tokens.size();
  const auto at = [&](size_t i) { return tokens[count - 1 - i]; };
  const auto most = static_cast<size_t>(longest);
  std::vector<uint32_t> z(count);
  size_t left = 0, right = 0, best = 0, best_at = 0;
  for (size_t i = 1; i < count; ++i) {
    size_t same = i < right ? std::min<size_t>(right - i, z[i - left]) : 0;
    while (same < most && i + same < count && at(same) == at(i + same)) ++same;
    z[i] = static_cast<uint32_t>(same);
    if (i + same > right) {
      left = i;
      right = i + same;
    }
    if (same <= best) continue;
    best = same;
    best_at = i;
    if (best >= most) break;
  }
  return best >= static_cast<size_t>(least) && best > 0 ? count - best_at : 0;
}

std::vector<int32_t> NgramProposer::propose(const Request& request, int most) const {
  const std::span<const int32_t> tokens = request.tokens;
  const size_t next = find_continuation(tokens, settings_.longest, settings_.least);
  if (next == 0) return {};
  std::vector<int32_t> guesses;
  for (int i = 0; i < std::min(most, settings_.tokens); ++i) {
    const size_t from = next + guesses.size();
    guesses.push_back(from < tokens.size() ? tokens[from] : guesses[from - tokens.size()]);
  }
  return guesses;
}

}  // namespace valora::scheduler
