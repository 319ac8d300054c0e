#include <algorithm>
#include <set>

#include "generator/data/metrics/families.h"

namespace valora::generator {
namespace {

// The task's labels, followed by labels that only occur in samples, sorted.
std::vector<std::string> all_labels(const Task& task, Samples samples) {
  std::vector<std::string> labels = task.labels;
  std::set<std::string> others;
  for (const Sample& sample : samples) others.insert(sample.labels.front());
  for (const std::string& label : labels) others.erase(label);
  labels.insert(labels.end(), others.begin(), others.end());
  return labels;
}

// The label's index; labels.size() for any other answer. An exact match takes precedence over one
// that differs in case.
size_t column_of(const Prediction& prediction, const std::vector<std::string>& labels) {
  const auto exact = std::find(labels.begin(), labels.end(), prediction.text);
  if (prediction.labels.empty() && exact != labels.end())
    return static_cast<size_t>(exact - labels.begin());
  const auto named = [&](const std::string& label) { return names_label(prediction, label); };
  return static_cast<size_t>(std::find_if(labels.begin(), labels.end(), named) - labels.begin());
}

}  // namespace

std::optional<ConfusionTable> confusion(const Task& task, std::span<const Sample> samples,
                                        std::span<const Prediction> predictions) {
  if ((task.head && task.head->multi_label) || samples.empty() ||
      samples.size() != predictions.size())
    return {};
  const auto has_one = [](const Sample& sample) { return sample.labels.size() == 1; };
  if (!std::all_of(samples.begin(), samples.end(), has_one)) return {};
  ConfusionTable table{all_labels(task, samples), {}};
  table.counts.assign(table.labels.size(), std::vector<int64_t>(table.labels.size() + 1, 0));
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto row = std::find(table.labels.begin(), table.labels.end(), samples[i].labels.front());
    ++table.counts[static_cast<size_t>(row - table.labels.begin())]
                  [column_of(predictions[i], table.labels)];
  }
  return table;
}

}  // namespace valora::generator
