// Guessed tokens that a step verifies beside a request's last token (scheduler/proposer.h). Answers
// stay the same.
#pragma once

#include <string>

#include "base/result.h"

namespace valora {

struct SpeculationOptions {
  static constexpr int kMostTokens = 32, kLongest = 64;

  int tokens = 0;  // guessed at a time; 0: none
  // The last `longest` to `least` tokens of a sequence are looked up in it.
  int longest = 5, least = 5;
  std::string ignored;  // a method that is not served, which changes no answer
};

// As vLLM's --speculative-config: {"method": "ngram", "num_speculative_tokens": 4,
// "prompt_lookup_max": 5, "prompt_lookup_min": 2}. Other methods only set `ignored`.
// kInvalidArgument names the key.
Result<SpeculationOptions> parse_speculation(const std::string& text);

}  // namespace valora
