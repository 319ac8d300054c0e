// Samples the next token of one sequence from its logits. Torch-free; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "scheduler/sampled_token.h"

namespace valora::serving {

// Sampling settings with all defaults filled in.
struct SamplingSettings {
  double temperature = 1;  // 0: greedy
  double top_p = 1;
  int top_k = 0;  // 0: off
  double min_p = 0;
  double repetition_penalty = 1;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;
  // A bit per token, as in Sampler::sample(); the others are never chosen. Empty: all are allowed.
  std::vector<uint32_t> allowed;
  std::vector<std::vector<int32_t>> bad_words;  // tokens that must not follow each other so
  uint64_t seed = 0;
  int top_logprobs = -1;  // number of alternatives to report; -1: no logprobs
};

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

  // logits: [vocab], changed in place. Tokens in `forbidden` are never chosen. kInternal if a logit
  // is NaN or plus infinity, or if all are minus infinity; kUnprocessable if the settings leave no
  // token. allowed: a bit per token, bit id % 32 of
  // word id / 32; the others count as minus infinity, for log probabilities, too. Empty: all are.
  Result<SampledToken> sample(std::span<float> logits, std::span<const int32_t> forbidden,
                              std::span<const uint32_t> allowed = {});
  const SamplingSettings& settings() const { return settings_; }

 private:
  void penalise(std::span<float> logits) const;
  void forbid_bad_words(std::span<float> logits) const;
  int32_t draw(std::span<const float> logits, int32_t best);  // best: argmax of the logits
  double uniform();

  SamplingSettings settings_;
  std::unordered_map<int32_t, int> generated_;  // token → count
  std::vector<int32_t> prompt_tokens_;  // sorted, distinct; empty without a repetition penalty
  std::vector<int32_t> written_;        // the tokens in order; empty without bad words
  uint64_t draws_ = 0;
};

}  // namespace valora::serving
