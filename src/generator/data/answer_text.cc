#include "generator/data/answer_text.h"

#include <algorithm>

namespace valora::generator {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return lower;
}

std::string folded(std::string_view text) { return lower_case(trimmed(text)); }

std::string answer_of(const Prediction& prediction) {
  std::string text = prediction.text;
  for (size_t i = 0; i < prediction.labels.size(); ++i)
    text = (i ? text + ", " : "") + prediction.labels[i];
  return text;
}

std::vector<std::string> references_of(const Sample& sample) {
  if (!sample.references.empty() || sample.answer.empty()) return sample.references;
  return {sample.answer};
}

}  // namespace valora::generator
