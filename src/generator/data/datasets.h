// A task's data files as samples. Torch-free.
#pragma once

#include <vector>

#include "base/result.h"
#include "generator/data/task.h"

namespace valora::generator {

// All samples of a source as they stand in it, boxes as shares, media as absolute paths of files that exist. What is
// wrong with a line, an annotation or a file is an error that names it; nothing is left out in silence.
// `labels`: of the samples (labels, boxes), where the task names its own; another one is an error.
Result<std::vector<Sample>> read_samples(const DataSource& source, const Task& task);
// Media alone: pictures of a folder (in the order of their names), or a JSONL file's media. For teachers.
Result<std::vector<Sample>> read_unlabelled(const DataSource& source, const Task& task);

// Gives every sample its question (the task's template, its own where it has one) and its answer (of labels, boxes or
// text), as the language model is trained and asked (VaLoRA Appendix B).
Status apply_templates(const Task& task, std::vector<Sample>& samples);
// The labels of a classification: the task's, or those that its samples have, sorted.
Result<std::vector<std::string>> labels_of(const Task& task, const std::vector<Sample>& samples);

}  // namespace valora::generator
