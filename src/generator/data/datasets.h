// Reads a task's data files as samples. Torch-free.
#pragma once

#include <vector>

#include "base/result.h"
#include "generator/data/task.h"

namespace valora::generator {

// All samples of a source in file order, with boxes as shares of the picture and media as absolute
// paths of existing files. Any invalid line, annotation or file is an error that names it. If the
// task lists `labels`, samples and boxes may have no others. Dropped, and counted in the log:
// COCO's crowds, and its images without a box if the question's {label} then cannot be filled in.
Result<std::vector<Sample>> read_samples(const DataSource& given, const Task& task);
// Media without answers, for teachers: the pictures of a folder and its subfolders (sorted by name;
// videos for a video task), or the media and, where given, questions of a JSONL file.
Result<std::vector<Sample>> read_unlabelled(const DataSource& given, const Task& task);

// Gives every sample its question (its own, otherwise the task's template) and its answer (from
// labels, boxes or text), in the form used for training and serving the language model (VaLoRA
// Appendix B). {label} is filled with the labels of the sample's boxes, or the task's if it has no
// box. labels: text for {labels}; empty: question_labels(task, samples). A sample without an answer
// (read_unlabelled) gets none.
Status apply_templates(const Task& task, std::vector<Sample>& samples,
                       const std::vector<std::string>& labels = {});
// The labels to fill in for {labels}: labels_of(task, samples). If the task lists no labels, pass
// the training samples, so that all samples get the same question. Empty if the question has no
// {labels}.
Result<std::vector<std::string>> question_labels(const Task& task,
                                                 const std::vector<Sample>& samples);
// The question for samples without their own: the task's template, or its type's. Empty for
// question answering without a template.
std::string question_template(const Task& task);
// The question a client should ask to get answers like those of these samples; call before
// apply_templates. It is the samples' own question if they share one. Otherwise the task's template
// with {labels} filled in, where {label} stands for the object to find; empty if every sample has
// its own.
Result<std::string> common_question(const Task& task, const std::vector<Sample>& samples);
// The labels of a classification: the task's, or those of its samples (or their boxes), sorted.
// kInvalidArgument if there are none.
Result<std::vector<std::string>> labels_of(const Task& task, const std::vector<Sample>& samples);
// The labels that answers or boxes can have, according to the task and its training samples. Empty
// if unknown: grounding expressions are not labels, except for COCO's categories.
std::vector<std::string> answer_labels(const Task& task, const std::vector<Sample>& samples);

}  // namespace valora::generator
