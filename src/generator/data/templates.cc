#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "generator/data/box_text.h"
#include "generator/data/datasets.h"

namespace valora::generator {
namespace {

constexpr std::string_view kLabel = "{label}", kLabels = "{labels}";
constexpr std::string_view kNoBoxes = "none";

// Paraphrased from figure 25 of VaLoRA.
std::string_view built_in_question(TaskType type) {
  switch (type) {
    case TaskType::kClassification: return "Which of these is it: {labels}?";
    case TaskType::kQuestionAnswering: return "";
    case TaskType::kCaptioning: return "Generate the caption in English:";
    case TaskType::kDetection:
      return "Please box all the objects in the picture that you think are {label}.";
    case TaskType::kGrounding: return "Box the {label} in the picture.";
    case TaskType::kVideo:
      return "Please analyze the consecutive frames sequence and identify the actions occurring in "
             "the video.";
  }
  return "";
}

std::string joined(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, ", "));
}

// In one pass, so that braces in a label are not filled in.
std::string fill_in(std::string_view text, const std::string& label, const std::string& labels) {
  std::string filled;
  while (!text.empty()) {
    if (text.starts_with(kLabel) || text.starts_with(kLabels)) {
      const bool all = text.starts_with(kLabels);
      filled += all ? labels : label;
      text.remove_prefix((all ? kLabels : kLabel).size());
    } else {
      filled += text.front();
      text.remove_prefix(1);
    }
  }
  return filled;
}

// The labels of the sample's boxes, each once, in order.
std::vector<std::string> labels_of_boxes(const Sample& sample) {
  std::vector<std::string> labels;
  for (const LabelledBox& box : sample.boxes)
    if (!box.label.empty() && std::find(labels.begin(), labels.end(), box.label) == labels.end())
      labels.push_back(box.label);
  return labels;
}

// The first one of those with equal frequency.
std::string most_frequent(const std::vector<std::string>& texts) {
  std::map<std::string_view, int> counts;
  for (const std::string& text : texts) ++counts[text];
  const auto most = std::max_element(
      texts.begin(), texts.end(),
      [&](const std::string& a, const std::string& b) { return counts[a] < counts[b]; });
  return most == texts.end() ? "" : *most;
}

std::string answer_of(const Task& task, const Sample& sample) {
  if (has_boxes(task.type))
    return sample.boxes.empty() ? std::string(kNoBoxes) : write_boxes(sample.boxes, task.boxes);
  if (has_labels(task.type) && !sample.labels.empty()) return joined(sample.labels);
  if (!sample.answer.empty() || sample.references.empty()) return sample.answer;
  return task.type == TaskType::kCaptioning ? sample.references.front()
                                            : most_frequent(sample.references);
}

}  // namespace

std::string question_template(const Task& task) {
  return task.question.empty() ? std::string(built_in_question(task.type)) : task.question;
}

Status apply_templates(const Task& task, std::vector<Sample>& samples) {
  const std::string question = question_template(task);
  std::string labels;
  if (question.find(kLabels) != question.npos) {
    VALORA_TRY(all, labels_of(task, samples));
    labels = joined(all);
  }
  const bool asks_label = question.find(kLabel) != question.npos;
  for (Sample& sample : samples) {
    if (sample.question.empty()) {
      const std::string label =
          sample.boxes.empty() ? joined(task.labels) : joined(labels_of_boxes(sample));
      if (question.empty())
        return invalid(sample.origin + ": there is no question, and the task has none", "question");
      if (asks_label && label.empty())
        return invalid(sample.origin +
                           ": there is no labelled box, nor labels of the task, for the {label} in "
                           "its question",
                       "question");
      sample.question = fill_in(question, label, labels);
    }
    sample.answer = answer_of(task, sample);
  }
  return {};
}

Result<std::vector<std::string>> labels_of(const Task& task, const std::vector<Sample>& samples) {
  if (!task.labels.empty()) return task.labels;
  std::set<std::string> labels;
  for (const Sample& sample : samples) {
    labels.insert(sample.labels.begin(), sample.labels.end());
    for (const LabelledBox& box : sample.boxes)
      if (!box.label.empty()) labels.insert(box.label);
  }
  if (labels.empty())
    return invalid("the task " + task.name + " has no labels, and its samples have none", "labels");
  return std::vector<std::string>(labels.begin(), labels.end());
}

}  // namespace valora::generator
