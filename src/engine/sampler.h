// The next token of one sequence from its logits. Torch-free: works on one row of floats.
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

// All choices made: nothing absent any more.
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
  int top_logprobs = -1;  // alternatives to report; -1: no logprobs at all
};

using scheduler::RankedToken;
using scheduler::SampledToken;

class Sampler {
 public:
  // prompt counts for the repetition penalty only.
  Sampler(SamplingSettings settings, std::span<const int32_t> prompt);

  // Changes `logits` in place. Ids in `forbidden` cannot be chosen. kInternal when no logit is
  // finite or one is NaN or plus infinity.
  Result<SampledToken> sample(std::span<float> logits, std::span<const int32_t> forbidden);
  const SamplingSettings& settings() const { return settings_; }

 private:
  void penalise(std::span<float> logits) const;
  int32_t draw(std::span<const float> logits, int32_t best);  // best: the index of the highest
  double uniform();

  SamplingSettings settings_;
  std::unordered_map<int32_t, int> generated_;  // token → times
  std::vector<int32_t> prompt_tokens_;          // distinct; kept only where a penalty needs them
  uint64_t draws_ = 0;
};

}  // namespace valora
