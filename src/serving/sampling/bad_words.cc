#include "serving/sampling/bad_words.h"

namespace valora::serving {

std::vector<std::vector<int32_t>> tokens_of(const std::vector<std::string>& words,
                                            const text::Tokenizer& tokenizer) {
  std::vector<std::vector<int32_t>> out;
  for (const std::string& word : words) {
    std::vector<int32_t> first = tokenizer.encode(word, /*add_special_tokens=*/false);
    std::vector<int32_t> later = tokenizer.encode(" " + word, /*add_special_tokens=*/false);
    // A space that is a separate token comes before the word.
    const bool other = !first.empty() && later.size() == first.size() && later != first;
    if (!first.empty()) out.push_back(std::move(first));
    if (other) out.push_back(std::move(later));
  }
  return out;
}

}  // namespace valora::serving
