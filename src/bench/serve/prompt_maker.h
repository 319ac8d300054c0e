// Random prompts of a wanted length in tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace valora::bench {

// Words of random syllables, with a space before each: no model has seen them, no two seeds give
// the same.
std::string random_words(int words, uint64_t seed);

class PromptMaker {
 public:
  // ids: of random_words(words, …), as the served tokenizer writes them.
  static Result<PromptMaker> make(std::vector<int32_t> ids, int words);

  // Exactly so many tokens, drawn from those that words are written with: never a special one.
  std::vector<int32_t> ids(int tokens, uint64_t seed) const;
  // Words that come to about so many tokens.
  std::string text(int tokens, uint64_t seed) const;

 private:
  PromptMaker(std::vector<int32_t> ids, double tokens_per_word)
      : ids_(std::move(ids)), tokens_per_word_(tokens_per_word) {}
  std::vector<int32_t> ids_;
  double tokens_per_word_;
};

}  // namespace valora::bench
