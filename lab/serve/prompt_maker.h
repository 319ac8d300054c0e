// Generates random prompts of a given length in tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace valora::bench {

// Words of random syllables, each preceded by a space. Different seeds give different words.
std::string random_words(int words, uint64_t seed);

class PromptMaker {
 public:
  // `ids`: random_words(words, …) as tokens of the served model.
  static Result<PromptMaker> make(std::vector<int32_t> ids, int words);

  // Exactly `tokens` ids, drawn from the words' ids and therefore never special tokens.
  std::vector<int32_t> ids(int tokens, uint64_t seed) const;
  // Words that amount to about `tokens` tokens.
  std::string text(int tokens, uint64_t seed) const;

 private:
  PromptMaker(std::vector<int32_t> ids, double tokens_per_word)
      : ids_(std::move(ids)), tokens_per_word_(tokens_per_word) {}
  std::vector<int32_t> ids_;
  double tokens_per_word_;
};

}  // namespace valora::bench
