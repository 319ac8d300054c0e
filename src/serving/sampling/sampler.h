// Samples the next token of a sequence from its logits. Independent of torch; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "scheduler/sampled_token.h"
#include "serving/sampling/logit_row.h"
#include "serving/sampling/sampling_settings.h"

namespace valora::serving {

using scheduler::RankedToken;
using scheduler::SampledToken;

// The probability and rank of a token.
struct ScoredToken {
  RankedToken token;
  int rank = 0;                  // 1: no token is more likely
  std::vector<RankedToken> top;  // most likely first
};
// Scores token `id` under these logits of the whole vocabulary, with the `top` most likely ones. A
// token beyond the vocabulary has no probability.
// kInternal if a logit is NaN or plus infinity, or if all are minus infinity.
Result<ScoredToken> score_token(std::span<const float> logits, int32_t id, int top);

class Sampler {
 public:
  // prompt: token ids that count towards the repetition penalty.
  Sampler(SamplingSettings settings, std::span<const int32_t> prompt);

  // Modifies the row's logits. Never chooses tokens in `forbidden`. kInternal if a logit is NaN or
  // plus infinity, or if all are minus infinity; kUnprocessable if the settings leave no token.
  // allowed: one bit per token, bit id % 32 of word id / 32; other tokens count as minus infinity,
  // for log probabilities, too. Empty: all are allowed. Returns nullopt, without side effects, if
  // the row lacks data for the choice (LogitRow::missing()).
  std::optional<Result<SampledToken>> sample(LogitRow& row, std::span<const int32_t> forbidden,
                                             std::span<const uint32_t> allowed = {});
  // logits: [vocab], the whole row, modified in place.
  Result<SampledToken> sample(std::span<float> logits, std::span<const int32_t> forbidden,
                              std::span<const uint32_t> allowed = {});
  // The query for which a partial row of `vocab` tokens will rarely lack data when sample() is
  // called with these arguments. nullopt if the whole row should be used: for many alternatives,
  // log probabilities of more tokens than are allowed, or changes to more than a quarter of the
  // logits.
  std::optional<kernels::CandidateQuery> query(int32_t vocab, std::span<const int32_t> forbidden,
                                               std::span<const uint32_t> allowed = {}) const;
  const SamplingSettings& settings() const { return settings_; }

 private:
  bool penalises_repetition() const { return settings_.repetition_penalty != 1; }
  bool penalises_generated() const {
    return penalises_repetition() || settings_.presence_penalty != 0 ||
           settings_.frequency_penalty != 0;
  }
  void change(int32_t id);  // from now on, penalise() changes this token's logit
  void penalise(LogitRow& row) const;
  // The last token of each bad word whose preceding tokens were just generated.
  std::vector<int32_t> ends_of_bad_words() const;
  double uniform() const;  // for the next draw

  SamplingSettings settings_;
  std::unordered_map<int32_t, int> generated_;  // token → count
  std::vector<int32_t> prompt_tokens_;  // sorted, unique; empty without a repetition penalty
  std::vector<int32_t> changed_;        // sorted, unique: tokens whose logits penalise() changes
  std::vector<int32_t> written_;        // generated tokens in order; empty without bad words
  uint64_t draws_ = 0;
};

}  // namespace valora::serving
