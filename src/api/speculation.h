// Speculative decoding: draft tokens that a step verifies along with a request's last token
// (scheduler/proposer.h). Answers do not change.
#pragma once

#include <string>

#include "base/result.h"

namespace valora {

struct SpeculationOptions {
  static constexpr int kMostTokens = 32, kLongest = 64;

  int tokens = 0;  // drafted at a time; 0: none
  // The last `longest` to `least` tokens of a sequence are searched for earlier in it.
  int longest = 5, least = 5;
  std::string ignored;  // an unsupported method, which changes no answer
};

// Parses vLLM's --speculative-config: {"method": "ngram", "num_speculative_tokens": 4,
// "prompt_lookup_max": 5, "prompt_lookup_min": 2}. Other methods only set `ignored`.
// kInvalidArgument names the key.
Result<SpeculationOptions> parse_speculation(const std::string& text);

}  // namespace valora
