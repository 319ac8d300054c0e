// A query about a row of logits that stays on a device, and its result. Each token of the row is
// exactly one of: listed by the caller, because its logit may be changed before a token is chosen;
// not allowed; or one of the "others".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace valora::kernels {

struct Candidate {
  float logit = 0;
  int32_t id = 0;
};

// Higher logits first; ties are broken by lower id.
constexpr bool better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

struct CandidateQuery {
  int64_t row = 0;              // in the logits
  int32_t vocab = 0;            // only the first `vocab` columns count
  std::vector<int32_t> listed;  // sorted, distinct, in [0, vocab)
  // A bit per token: bit id % 32 of word id / 32; tokens without a word are not allowed. Listed
  // tokens need no bit. Empty: all tokens are allowed.
  std::vector<uint32_t> allowed;
  int32_t wanted = 1;      // how many of the best others to list; 1: no list
  bool sum = false;        // compute the sum of exponentials
  double temperature = 0;  // also compute it at this temperature; 0: no
  bool parts = false;      // return PartSums
};

// Consecutive tokens that a device sums up together.
inline constexpr int32_t kPartTokens = 4096;

// Sums over the others, within some range of tokens, that have finite logits. Relative to
// `largest`.
struct PartSums {
  double sum = 0;         // Σ exp(logit - largest), if requested
  double scaled_sum = 0;  // Σ exp((logit - largest) / temperature), if requested
  float largest = 0;
  int32_t best = -1;  // token with the largest logit, the first of equals; -1: there are no others
  int32_t count = 0;  // number of others
  int32_t numbers = 1;  // 0: a logit is NaN or +infinity; other fields are meaningless
};

struct Candidates {
  PartSums all;                   // over the whole row
  std::span<const float> listed;  // the logits of the listed tokens, allowed or not
  // Some of the others, in any order; every other token has a lower logit than all of these. Empty
  // if no list was requested or it would be too long; then only all.best is known.
  std::span<const Candidate> best;
  std::span<const PartSums> parts;  // [ceil(vocab / kPartTokens)], if requested
};

}  // namespace valora::kernels
