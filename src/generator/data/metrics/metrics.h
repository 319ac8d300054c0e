// The metrics of VaLoRA's five kinds of tasks. Torch-free. Every score is in 0 … 1.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "generator/data/task.h"

namespace valora::generator {

// The answer to one sample, from the language model or from a head.
struct Prediction {
  std::string text;  // from the language model
  // A head's labels: the best one, or all that a multi-label head accepts.
  std::vector<std::string> labels;
  // Of an answer in boxes (AnswerConstraint::Kind::kBoxes); absent: they are in the text.
  std::optional<std::vector<LabelledBox>> boxes = {};
};

struct Score {
  double value = 0;                // of the whole set
  std::vector<double> of_samples;  // per sample, 0 … 1 (F1: from its own boxes)
};

// counts[row][column]: samples of labels[row] that were answered with labels[column]. The last
// column is any other answer.
struct ConfusionTable {
  std::vector<std::string> labels;
  std::vector<std::vector<int64_t>> counts;  // [labels][labels + 1]
};

// One prediction per sample, in the same order. kInvalidArgument if a sample lacks the reference
// that the metric needs; the message names the sample's origin.
Result<Score> score(const Task& task, std::span<const Sample> samples,
                    std::span<const Prediction> predictions);
// Only for tasks whose samples have one label each; otherwise nullopt.
std::optional<ConfusionTable> confusion(const Task& task, std::span<const Sample> samples,
                                        std::span<const Prediction> predictions);

}  // namespace valora::generator
