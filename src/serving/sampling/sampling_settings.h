// Sampling settings with all defaults filled in.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace valora::serving {

struct SamplingSettings {
  double temperature = 1;  // 0: greedy
  double top_p = 1;
  int top_k = 0;  // 0: off
  double min_p = 0;
  double repetition_penalty = 1;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;
  // One bit per token, as in Sampler::sample(); other tokens are never chosen. Empty: all are
  // allowed.
  std::vector<uint32_t> allowed;
  std::vector<std::vector<int32_t>> bad_words;  // token sequences that must not occur
  uint64_t seed = 0;
  std::vector<int32_t> reported = {};  // tokens whose log probabilities are reported
  int top_logprobs = -1;               // number of alternatives to report; -1: no logprobs
};

}  // namespace valora::serving
