// Top-1: the answer is the sample's label; for several labels, exactly all of them.
#include <set>

#include "generator/data/answer_text.h"
#include "generator/data/metrics/families.h"

namespace valora::generator {
namespace {

using LabelSet = std::set<std::string>;

// Commas separate labels in a text. A label that contains one is split in the same way on both
// sides.
void add_parts(std::string_view text, LabelSet& parts) {
  while (true) {
    const size_t comma = text.find(',');
    if (std::string part = folded(text.substr(0, comma)); !part.empty())
      parts.insert(std::move(part));
    if (comma == text.npos) return;
    text.remove_prefix(comma + 1);
  }
}

LabelSet parts_of(const std::vector<std::string>& labels) {
  LabelSet parts;
  for (const std::string& label : labels) add_parts(label, parts);
  return parts;
}

bool names_all(const Prediction& prediction, const std::vector<std::string>& labels) {
  if (!prediction.labels.empty())
    return LabelSet(prediction.labels.begin(), prediction.labels.end()) ==
           LabelSet(labels.begin(), labels.end());
  return parts_of({prediction.text}) == parts_of(labels);
}

}  // namespace

bool names_label(const Prediction& prediction, const std::string& label) {
  if (!prediction.labels.empty())
    return prediction.labels.size() == 1 && prediction.labels.front() == label;
  return folded(prediction.text) == folded(label);
}

Result<Score> score_top1(const Task& task, Samples samples, Predictions predictions) {
  const bool multi_label = task.head && task.head->multi_label;
  std::vector<double> right;
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::vector<std::string>& labels = samples[i].labels;
    if (labels.empty() && !multi_label)
      return lacking(samples[i], "label, which top-1 compares with");
    const bool one = labels.size() == 1 && !multi_label;
    right.push_back(one ? names_label(predictions[i], labels.front())
                        : names_all(predictions[i], labels));
  }
  return mean_of(std::move(right));
}

}  // namespace valora::generator
