// What is asked of a row of logits that stays on a device, and what is told of it. Each token of
// the row is either listed, by whoever asks, because its logit may be changed before a token is
// chosen; or not allowed; or one of the others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace valora::kernels {

struct Candidate {
  float logit = 0;
  int32_t id = 0;
};

// Higher logit first, then lower id, so that ties have a defined order.
constexpr bool better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

struct CandidateQuery {
  int64_t row = 0;              // of the logits
  int32_t vocab = 0;            // the columns that count, the first ones
  std::vector<int32_t> listed;  // sorted, distinct, in [0, vocab)
  // A bit per token: bit id % 32 of word id / 32; tokens without a word are not allowed. Listed
  // ones need no bit. Empty: all are allowed.
  std::vector<uint32_t> allowed;
  int32_t wanted = 1;      // so many of the others that are best; 1: no list of them
  bool sum = false;        // whether their probabilities are wanted,
  double temperature = 0;  // and those under this temperature; 0: they are not
  bool parts = false;      // whether PartSums are wanted
};

// Tokens that lie side by side: a device sums them up together.
inline constexpr int32_t kPartTokens = 4096;

// Of the others among some tokens, with finite logits. Sums are relative to `largest`.
struct PartSums {
  double sum = 0;         // of exp(logit - largest), if it is wanted
  double scaled_sum = 0;  // of exp((logit - largest) / temperature), if it is wanted
  float largest = 0;
  int32_t best = -1;    // its token, the first of equal ones; -1: there are no others
  int32_t count = 0;    // of them
  int32_t numbers = 1;  // 0: a logit of any token is NaN or plus infinity; all else has no meaning
};

struct Candidates {
  PartSums all;                   // of the row
  std::span<const float> listed;  // the logits of the listed tokens, allowed or not
  // Others, in any order; each of the rest has a lower logit than all of these. Empty if not
  // wanted, or if there would be too many: then the best one is known alone.
  std::span<const Candidate> best;
  std::span<const PartSums> parts;  // [ceil(vocab / kPartTokens)], if they are wanted
};

}  // namespace valora::kernels
