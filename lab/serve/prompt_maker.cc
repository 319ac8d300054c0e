#include "lab/serve/prompt_maker.h"

#include <algorithm>
#include <cmath>

#include "lab/serve/random.h"

namespace valora::bench {

std::string random_words(int words, uint64_t seed) {
  static constexpr char kConsonants[] = "bdfghjklmnprstvz";
  static constexpr char kVowels[] = "aeiou";
  Random random(seed);
  std::string text;
  for (int i = 0; i < words; ++i) {
    text += ' ';
    const uint64_t syllables = 1 + random.below(3);
    for (uint64_t s = 0; s < syllables; ++s) {
      text += kConsonants[random.below(sizeof kConsonants - 1)];
      text += kVowels[random.below(sizeof kVowels - 1)];
    }
  }
  return text;
}

Result<PromptMaker> PromptMaker::make(std::vector<int32_t> ids, int words) {
  if (ids.empty())
    return unprocessable("the server's tokenizer writes " + std::to_string(words) +
                         " words with no token");
  const double tokens_per_word = static_cast<double>(ids.size()) / words;
  return PromptMaker(std::move(ids), tokens_per_word);
}

std::vector<int32_t> PromptMaker::ids(int tokens, uint64_t seed) const {
  Random random(seed);
  std::vector<int32_t> prompt;
  for (int i = 0; i < tokens; ++i) prompt.push_back(ids_[random.below(ids_.size())]);
  return prompt;
}

std::string PromptMaker::text(int tokens, uint64_t seed) const {
  return random_words(std::max(1, static_cast<int>(std::lround(tokens / tokens_per_word_))), seed);
}

}  // namespace valora::bench
