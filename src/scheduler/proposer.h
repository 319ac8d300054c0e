// Guesses the next tokens of a sequence. A step verifies guesses along with the last token: each
// correct one saves a step (speculative decoding). Pure and without torch, so the simulator runs
// it, too.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/request.h"

namespace valora::scheduler {

// Thread-safe.
class Proposer {
 public:
  virtual ~Proposer() = default;
  virtual int most() const = 0;  // the most guesses at a time
  // Returns at most `most` tokens; empty: no guess. May keep what it needs in the request. Throws
  // std::bad_alloc.
  virtual std::vector<int32_t> propose(Request& request, int most) const = 0;
};

// Guesses the tokens that followed the last earlier occurrence of the sequence's last n tokens, for
// the largest n in a range that has one (prompt lookup decoding). Works well if answers repeat
// their prompt or themselves. If the repetition reaches the end of the sequence, it is assumed to
// continue.
class NgramProposer final : public Proposer {
 public:
  struct Settings {
    int tokens = 0;              // most tokens guessed at a time
    int longest = 5, least = 5;  // range of n; at least 1
  };
  explicit NgramProposer(const Settings& settings) : settings_(settings) {}

  int most() const override { return settings_.tokens; }
  std::vector<int32_t> propose(Request& request, int most) const override;

 private:
  Settings settings_;
};

}  // namespace valora::scheduler
