// Checks that samples fit their task. Torch-free.
#pragma once

#include <string>
#include <unordered_set>

#include "base/result.h"
#include "generator/data/task.h"

namespace valora::generator {

// Converts a box in the data's units, in a picture of `width` by `height` units (1 by 1: shares).
// Corners that are outside by up to half a pixel or 1e-6 of a side, as after rounding, are moved to
// the edge. Further outside, or without area: an error.
Result<Box> box_within(double x0, double y0, double x1, double y1, double width, double height);

class SampleChecks {
 public:
  // labelled: samples must have the answers, labels or boxes of the task's type; otherwise only
  // media and questions.
  SampleChecks(const Task& task, bool labelled);
  const Task& task() const { return task_; }
  bool labelled() const { return labelled_; }
  // Messages do not name the sample.
  Status check(const Sample& sample) const;

 private:
  Status check_media(const Sample& sample) const;
  Status check_answer(const Sample& sample) const;
  Status check_boxes(const Sample& sample) const;
  Status check_labels(const Sample& sample) const;
  bool is_known(const std::string& label) const { return known_.empty() || known_.contains(label); }

  const Task& task_;
  const bool labelled_;
  const std::unordered_set<std::string> known_;
};

}  // namespace valora::generator
