// Guesses of the tokens that follow a sequence. A step verifies them beside its last token: each
// right one saves a step (speculative decoding). Pure and without torch, so the simulator runs
// them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/request.h"

namespace valora::scheduler {

// Thread-safe.
class Proposer {
 public:
  virtual ~Proposer() = default;
  virtual int most() const = 0;  // guesses at a time
  // At most `most` tokens; empty: no guess. Throws std::bad_alloc.
  virtual std::vector<int32_t> propose(const Request& request, int most) const = 0;
};

// What followed the last occurrence of the sequence's last n tokens, for the largest n of a range
// that has one (prompt lookup decoding). Good where answers repeat their prompt or themselves. A
// sequence that repeats itself up to its end is taken to go on so.
class NgramProposer final : public Proposer {
 public:
  struct Settings {
    int tokens = 0;              // guessed at a time
    int longest = 5, least = 5;  // n
  };
  explicit NgramProposer(const Settings& settings) : settings_(settings) {}

  int most() const override { return settings_.tokens; }
  std::vector<int32_t> propose(const Request& request, int most) const override;

 private:
  Settings settings_;
};

// → the index of the token after the last earlier occurrence of the last n tokens, for the largest
// n in [least, longest] that has one; 0: none. In time linear in the tokens.
size_t find_continuation(std::span<const int32_t> tokens, int longest, int least);

}  // namespace valora::scheduler
