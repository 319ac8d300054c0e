#include "scheduler/proposer.h"

#include <algorithm>

namespace valora::scheduler {

std::vector<int32_t> NgramProposer::propose(Request& request, int most) const {
  const std::span<const int32_t> tokens = request.tokens;
  const size_t next = request.ngrams.continuation(tokens, settings_.longest, settings_.least);
  if (next == 0) return {};
  std::vector<int32_t> guesses;
  for (int i = 0; i < std::min(most, settings_.tokens); ++i) {
    const size_t from = next + guesses.size();
    guesses.push_back(from < tokens.size() ? tokens[from] : guesses[from - tokens.size()]);
  }
  return guesses;
}

}  // namespace valora::scheduler
