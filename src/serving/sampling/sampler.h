// Samples the next token of one sequence from its logits. Torch-free; not thread-safe.
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

// How likely a token was.
struct ScoredToken {
  RankedToken token;
  int rank = 0;                  // 1: none is likelier
  std::vector<RankedToken> top;  // most likely first
};
// Of token `id` under these logits of the whole vocabulary, with the `top` most likely ones.
// kInternal if a logit is NaN or plus infinity, or if all are minus infinity.
Result<ScoredToken> score_token(std::span<const float> logits, int32_t id, int top);

class Sampler {
 public:
  // prompt: token ids that count for the repetition penalty.
  Sampler(SamplingSettings settings, std::span<const int32_t> prompt);

  // Changes the row's logits. Tokens in `forbidden` are never chosen. kInternal if a logit
  // is NaN or plus infinity, or if all are minus infinity; kUnprocessable if the settings leave no
  // token. allowed: a bit per token, bit id % 32 of word id / 32; the others count as minus
  // infinity, for log probabilities, too. Empty: all are. Nothing, as if it had not been called, if
  // the row lacks something for the choice (LogitRow::missing()).
  std::optional<Result<SampledToken>> sample(LogitRow& row, std::span<const int32_t> forbidden,
                                             std::span<const uint32_t> allowed = {});
  // logits: [vocab], of the whole row, changed in place.
  Result<SampledToken> sample(std::span<float> logits, std::span<const int32_t> forbidden,
                              std::span<const uint32_t> allowed = {});
  // What the next sample() with these arguments asks of a row of so many tokens, so that it seldom
  // needs more. Nothing if it should have the whole row: many alternatives, log probabilities of
  // more tokens than are allowed, or more than a quarter of the logits to be changed.
  std::optional<kernels::CandidateQuery> query(int32_t vocab, std::span<const int32_t> forbidden,
                                               std::span<const uint32_t> allowed = {}) const;
  const SamplingSettings& settings() const { return settings_; }

 private:
  bool penalises_repetition() const { return settings_.repetition_penalty != 1; }
  bool penalises_generated() const {
    return penalises_repetition() || settings_.presence_penalty != 0 ||
           settings_.frequency_penalty != 0;
  }
  void change(int32_t id);  // from now on penalise() changes its logit
  void penalise(LogitRow& row) const;
  // The last token of each word whose other tokens were generated just now.
  std::vector<int32_t> ends_of_bad_words() const;
  double uniform() const;  // of the next draw

  SamplingSettings settings_;
  std::unordered_map<int32_t, int> generated_;  // token → count
  std::vector<int32_t> prompt_tokens_;  // sorted, distinct; empty without a repetition penalty
  std::vector<int32_t> changed_;        // sorted, distinct: whose logits penalise() changes
  std::vector<int32_t> written_;        // the tokens in order; empty without bad words
  uint64_t draws_ = 0;
};

}  // namespace valora::serving
