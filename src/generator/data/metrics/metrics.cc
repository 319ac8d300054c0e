#include "generator/data/metrics/metrics.h"

#include <numeric>

#include "generator/data/metrics/families.h"

namespace valora::generator {

Score mean_of(std::vector<double> of_samples) {
  const double sum = std::accumulate(of_samples.begin(), of_samples.end(), 0.0);
  const double mean = sum / static_cast<double>(of_samples.size());
  return {mean, std::move(of_samples)};
}

Error lacking(const Sample& sample, const std::string& what) {
  return invalid(sample.origin + " has no " + what);
}

Result<Score> score(const Task& task, std::span<const Sample> samples,
                    std::span<const Prediction> predictions) {
  if (samples.empty()) return invalid("task " + task.name + " has no samples to score");
  if (samples.size() != predictions.size())
    return invalid("task " + task.name + " has " + std::to_string(samples.size()) +
                   " samples, but predictions for " + std::to_string(predictions.size()));
  switch (task.metric) {
    case Metric::kTop1: return score_top1(task, samples, predictions);
    case Metric::kExact: return score_exact(samples, predictions);
    case Metric::kVqa: return score_vqa(samples, predictions);
    case Metric::kF1AtIou: return score_f1_at_iou(task, samples, predictions);
    case Metric::kAccuracyAtIou: return score_accuracy_at_iou(task, samples, predictions);
    case Metric::kCider: return score_cider(samples, predictions);
    case Metric::kRougeL: return score_rouge_l(samples, predictions);
  }
  return internal("task " + task.name + " has an unknown metric");
}

}  // namespace valora::generator
