// Exact match: the answer equals the sample's or one of the references, ignoring surrounding white
// space.
#include <algorithm>

#include "generator/data/answer_text.h"
#include "generator/data/metrics/families.h"

namespace valora::generator {

Result<Score> score_exact(Samples samples, Predictions predictions) {
  std::vector<double> right;
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    if (sample.answer.empty() && sample.references.empty())
      return lacking(sample, "answer to compare with");
    const std::string answer = answer_of(predictions[i]);
    const auto same = [&](const std::string& other) { return trimmed(other) == trimmed(answer); };
    right.push_back((!sample.answer.empty() && same(sample.answer)) ||
                    std::any_of(sample.references.begin(), sample.references.end(), same));
  }
  return mean_of(std::move(right));
}

}  // namespace valora::generator
