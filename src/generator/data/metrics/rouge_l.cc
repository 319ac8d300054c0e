// ROUGE-L (Lin 2004): the longest common subsequence of words, weighted as in the published caption
// evaluation.
#include <algorithm>

#include "generator/data/answer_text.h"
#include "generator/data/metrics/families.h"

namespace valora::generator {
namespace {

constexpr double kBeta = 1.2;  // the weight of recall relative to precision

using Words = std::vector<std::string>;

size_t common_words(const Words& a, const Words& b) {
  std::vector<size_t> row(b.size() + 1,
                          // [j]: common words between those of `a` so far and the first j of `b`
                          0);
  for (const std::string& word : a) {
    size_t diagonal = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = word == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row.back();
}

double share(size_t part, size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Precision and recall each come from the reference that is best for it.
double f_score(const Words& answer, const std::vector<std::string>& references) {
  double precision = 0, recall = 0;
  for (const std::string& reference : references) {
    const Words words = caption_words(reference);
    const size_t common = common_words(answer, words);
    precision = std::max(precision, share(common, answer.size()));
    recall = std::max(recall, share(common, words.size()));
  }
  if (precision == 0 || recall == 0) return 0;
  return (1 + kBeta * kBeta) * precision * recall / (recall + kBeta * kBeta * precision);
}

}  // namespace

Result<Score> score_rouge_l(Samples samples, Predictions predictions) {
  std::vector<double> shares;
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::vector<std::string> references = references_of(samples[i]);
    if (references.empty()) return lacking(samples[i], "caption to compare with");
    shares.push_back(f_score(caption_words(answer_of(predictions[i])), references));
  }
  return mean_of(std::move(shares));
}

}  // namespace valora::generator
