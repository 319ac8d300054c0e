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

// In one pass, so that braces inside a label are not filled in.
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

// The labels of the sample's boxes, without duplicates, in order.
std::vector<std::string> labels_of_boxes(const Sample& sample) {
  std::vector<std::string> labels;
  for (const LabelledBox& box : sample.boxes)
    if (!box.label.empty() && std::find(labels.begin(), labels.end(), box.label) == labels.end())
      labels.push_back(box.label);
  return labels;
}

// The labels of samples and their boxes, sorted.
std::vector<std::string> labels_in(const std::vector<Sample>& samples) {
  std::set<std::string> labels;
  for (const Sample& sample : samples) {
    labels.insert(sample.labels.begin(), sample.labels.end());
    for (const LabelledBox& box : sample.boxes)
      if (!box.label.empty()) labels.insert(box.label);
  }
  return {labels.begin(), labels.end()};
}

// The most frequent text; the first one if several are equally frequent.
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

// Gives samples their questions.
class Questions {
 public:
  static Result<Questions> of(const Task& task, const std::vector<Sample>& samples,
                              std::vector<std::string> labels) {
    Questions questions(task);
    if (labels.empty()) {
      VALORA_TRY(all, question_labels(task, samples));
      labels = std::move(all);
    }
    questions.labels_ = joined(labels);
    return questions;
  }

  Result<std::string> ask(const Sample& sample) const {
    if (!sample.question.empty()) return sample.question;
    const std::string label =
        sample.boxes.empty() ? joined(task_.labels) : joined(labels_of_boxes(sample));
    if (template_.empty())
      return invalid(sample.origin + ": there is no question, and the task has none", "question");
    if (asks_label_ && label.empty())
      return invalid(sample.origin +
                         ": there is no labelled box, nor labels of the task, for the {label} in "
                         "its question",
                     "question");
    return fill_in(template_, label, labels_);
  }

  // Leaves {label} for the client to fill in.
  std::string open_form() const { return fill_in(template_, std::string(kLabel), labels_); }

 private:
  explicit Questions(const Task& task)
      : task_(task),
        template_(question_template(task)),
        asks_label_(template_.find(kLabel) != std::string::npos) {}

  const Task& task_;
  const std::string template_;
  const bool asks_label_;
  std::string labels_;  // joined, for {labels}
};

}  // namespace

std::string question_template(const Task& task) {
  return task.question.empty() ? std::string(built_in_question(task.type)) : task.question;
}

Status apply_templates(const Task& task, std::vector<Sample>& samples,
                       const std::vector<std::string>& labels) {
  VALORA_TRY(questions, Questions::of(task, samples, labels));
  for (Sample& sample : samples) {
    VALORA_TRY(question, questions.ask(sample));
    sample.question = std::move(question);
    sample.answer = answer_of(task, sample);
  }
  return {};
}

Result<std::vector<std::string>> question_labels(const Task& task,
                                                 const std::vector<Sample>& samples) {
  if (question_template(task).find(kLabels) == std::string::npos) return std::vector<std::string>();
  return labels_of(task, samples);
}

Result<std::string> common_question(const Task& task, const std::vector<Sample>& samples) {
  VALORA_TRY(questions, Questions::of(task, samples, {}));
  std::string first;
  bool one = true, own = true;
  for (const Sample& sample : samples) {
    VALORA_TRY(question, questions.ask(sample));
    if (first.empty()) first = question;
    one &= question == first;
    own &= !sample.question.empty();
  }
  if (one) return first;
  return own ? std::string() : questions.open_form();
}

Result<std::vector<std::string>> labels_of(const Task& task, const std::vector<Sample>& samples) {
  if (!task.labels.empty()) return task.labels;
  std::vector<std::string> labels = labels_in(samples);
  if (labels.empty())
    return invalid("the task " + task.name + " has no labels, and its samples have none", "labels");
  return labels;
}

std::vector<std::string> answer_labels(const Task& task, const std::vector<Sample>& samples) {
  if (!task.labels.empty()) return task.labels;
  const bool coco = task.train && task.train->format == DataSource::Format::kCoco;
  const bool closed = has_labels(task.type) || task.type == TaskType::kDetection || coco;
  return closed ? labels_in(samples) : std::vector<std::string>();
}

}  // namespace valora::generator
