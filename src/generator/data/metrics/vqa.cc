// VQA accuracy: min(1, agreeing answers / 3) (Antol et al. 2015).
#include <algorithm>

#include "generator/data/answer_text.h"
#include "generator/data/metrics/families.h"

namespace valora::generator {
namespace {

// Leaves out each answer in turn and counts the matching ones among the others.
double agreement(size_t agreeing, size_t answers) {
  const auto share = [](size_t others) { return std::min(1.0, static_cast<double>(others) / 3); };
  double sum = static_cast<double>(answers - agreeing) * share(agreeing);
  if (agreeing > 0) sum += static_cast<double>(agreeing) * share(agreeing - 1);
  return sum / static_cast<double>(answers);
}

}  // namespace

// A single answer counts as ten equal ones.
Result<Score> score_vqa(Samples samples, Predictions predictions) {
  std::vector<double> shares;
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::vector<std::string> answers = references_of(samples[i]);
    if (answers.empty()) return lacking(samples[i], "answers, which VQA accuracy counts");
    const std::string answer = normalised_vqa_answer(answer_of(predictions[i]));
    const auto agreeing = std::count_if(
        answers.begin(), answers.end(),
        [&](const std::string& other) { return normalised_vqa_answer(other) == answer; });
    shares.push_back(answers.size() == 1
                         ? static_cast<double>(agreeing)
                         : agreement(static_cast<size_t>(agreeing), answers.size()));
  }
  return mean_of(std::move(shares));
}

}  // namespace valora::generator
