// One function per metric, each in its own file; score() selects one (metrics.cc). The spans have
// equal length and are not empty.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "generator/data/metrics/metrics.h"

namespace valora::generator {

using Samples = std::span<const Sample>;
using Predictions = std::span<const Prediction>;

Result<Score> score_top1(const Task& task, Samples samples, Predictions predictions);
Result<Score> score_exact(Samples samples, Predictions predictions);
Result<Score> score_vqa(Samples samples, Predictions predictions);
Result<Score> score_f1_at_iou(const Task& task, Samples samples, Predictions predictions);
Result<Score> score_accuracy_at_iou(const Task& task, Samples samples, Predictions predictions);
Result<Score> score_cider(Samples samples, Predictions predictions);
Result<Score> score_rouge_l(Samples samples, Predictions predictions);

// True if the prediction is the label: a head's exactly, a text's case-insensitively.
bool names_label(const Prediction& prediction, const std::string& label);

Score mean_of(std::vector<double> of_samples);
Error lacking(const Sample& sample, const std::string& what);  // "train.jsonl:17 has no …, which …"

}  // namespace valora::generator
