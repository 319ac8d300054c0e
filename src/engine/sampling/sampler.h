// Samples the next token of one sequence from its logits. Torch-free; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "scheduler/step_executor.h"

namespace valora {

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
  uint64_t seed = 0;
  int top_logprobs = -1;  // number of alternatives to report; -1: no logprobs
};

using scheduler::RankedToken;
using scheduler::SampledToken;

class Sampler {
 public:
  // prompt: token ids that count for the repetition penalty.
  Sampler(SamplingSettings settings, std::span<const int32_t> prompt);

  // logits: [vocab], changed in place. Tokens in `forbidden` are never chosen. kInternal if a logit
  // is NaN or plus infinity, or if all are minus infinity. allowed: a bit per token, bit id % 32 of
  // word id / 32; the others count as minus infinity, for log probabilities, too. Empty: all are.
  Result<SampledToken> sample(std::span<float> logits, std::span<const int32_t> forbidden,
                              std::span<const uint32_t> allowed = {});
  const SamplingSettings& settings() const { return settings_; }

 private:
  void penalise(std::span<float> logits) const;
  int32_t draw(std::span<const float> logits, int32_t best);  // best: argmax of the logits
  double uniform();

  SamplingSettings settings_;
  std::unordered_map<int32_t, int> generated_;  // token → count
  std::vector<int32_t> prompt_tokens_;  // sorted, distinct; empty without a repetition penalty
  uint64_t draws_ = 0;
};

}  // namespace valora
