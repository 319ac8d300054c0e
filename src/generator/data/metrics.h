// What answers are worth: the metrics of VaLoRA's five kinds of tasks. Torch-free; every score lies
// in 0 … 1.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "generator/data/task.h"

namespace valora::generator {

// An answer to one sample: of the language model, or of a head.
struct Prediction {
  std::string text;  // of the language model
  std::vector<std::string>
      labels;  // of a head: the best one, or all that a multi-label head says yes to
};

struct Score {
  double value = 0;                // of the whole set
  std::vector<double> of_samples;  // each sample's own share, 0 … 1 (F1: of its boxes alone)
};

// How often a sample of `labels[row]` was answered as `labels[column]`; the last column is any
// other answer.
struct ConfusionTable {
  std::vector<std::string> labels;
  std::vector<std::vector<int64_t>> counts;  // [labels][labels + 1]
};

// One prediction a sample, in the same order. kInvalidArgument where a sample lacks what the metric
// compares with, naming the sample's origin.
Result<Score> score(const Task& task, std::span<const Sample> samples,
                    std::span<const Prediction> predictions);
// Of tasks whose samples have one label each; none for others.
std::optional<ConfusionTable> confusion(const Task& task, std::span<const Sample> samples,
                                        std::span<const Prediction> predictions);

}  // namespace valora::generator
