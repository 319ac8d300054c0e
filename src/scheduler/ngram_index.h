// The earlier occurrences of a sequence's last tokens, kept while it grows.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace valora::scheduler {

// Every call must have the tokens of the last one, and possibly more behind them, and the same
// `least`. 4 bytes per token, and an entry per distinct run of `least` tokens.
class NgramIndex {
 public:
  // Returns the index of the token after the last earlier occurrence of the last n tokens, for the
  // largest n in [least, longest] that has one; 0: none. least must be at least 1. Takes the time
  // of the new tokens and of the occurrences of the last `least` tokens, the latest first, up to
  // one of `longest` tokens. Throws std::bad_alloc; a run may be missed then.
  size_t continuation(std::span<const int32_t> tokens, int longest, int least);

 private:
  void add_until(std::span<const int32_t> tokens, size_t end, size_t least);

  std::unordered_map<uint64_t, uint32_t> last_end_;  // of a run, by its hash
  std::vector<uint32_t> previous_end_;  // of a run with the hash of the one that ends here; 0: none
};

}  // namespace valora::scheduler
