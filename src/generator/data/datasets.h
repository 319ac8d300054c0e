// A task's data files as samples. Torch-free.
#pragma once

#include <vector>

#include "base/result.h"
#include "generator/data/task.h"

namespace valora::generator {

// All samples of a source as they stand in it, boxes as shares, media as absolute paths of files
// that exist. What is wrong with a line, an annotation or a file is an error that names it; nothing
// is left out in silence. `labels`: of the samples (labels, boxes), where the task names its own;
// another one is an error. Left out and counted in the log: COCO's crowds, and its images without a
// box where there is nothing to fill in for the {label} of the question.
Result<std::vector<Sample>> read_samples(const DataSource& source, const Task& task);
// Media alone: pictures of a folder and the folders in it (in the order of their names; videos for
// a video task), or a JSONL file's media and, where its lines have them, questions. For teachers.
Result<std::vector<Sample>> read_unlabelled(const DataSource& source, const Task& task);

// Gives every sample its question (the task's template, its own where it has one) and its answer
// (of labels, boxes or text), as the language model is trained and asked (VaLoRA Appendix B).
// {labels} are labels_of(task, samples): a task without labels of its own should take those of its
// training data first, so that all its samples are asked the same. {label} are those of the
// sample's boxes, or the task's where it has no box. A sample without an answer (read_unlabelled)
// keeps none.
Status apply_templates(const Task& task, std::vector<Sample>& samples);
// What samples without a question of their own are asked: the task's template, or its type's; empty
// for question answering without one.
std::string question_template(const Task& task);
// The labels of a classification: the task's, or those that its samples (or their boxes) have,
// sorted. kInvalidArgument where there are none.
Result<std::vector<std::string>> labels_of(const Task& task, const std::vector<Sample>& samples);

}  // namespace valora::generator
