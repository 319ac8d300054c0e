#include "generator/teachers/lesson.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "generator/data/answer_text.h"
#include "generator/data/box_text.h"
#include "generator/data/datasets.h"

namespace valora::generator {
namespace {

// label: the object that a grounding question asks for; empty: all of the task's.
Result<std::string> template_question(const Task& task, Sample sample, const std::string& label) {
  if (!label.empty()) sample.boxes = {{label, {0, 0, 1, 1}}};
  std::vector<Sample> samples{std::move(sample)};
  VALORA_CHECK(apply_templates(task, samples));
  return std::move(samples.front().question);
}

// The label named by a text, ignoring case and a trailing full stop; null if none.
const std::string* find_label(const Task& task, std::string_view text) {
  text = trimmed(text);
  const auto exact = std::ranges::find(task.labels, text);
  if (exact != task.labels.end()) return &*exact;
  if (text.ends_with('.')) text.remove_suffix(1);
  const auto same = [&](const std::string& label) { return folded(label) == folded(text); };
  const auto found = std::ranges::find_if(task.labels, same);
  return found == task.labels.end() ? nullptr : &*found;
}

void read_labels(const Task& task, std::string_view answer, Lesson& lesson) {
  const bool several = task.head && task.head->multi_label;
  while (true) {
    const size_t comma = several ? answer.find(',') : answer.npos;
    const std::string* label = find_label(task, answer.substr(0, comma));
    if (!label) {
      lesson.foreign = true;
      return;
    }
    lesson.labels.push_back(*label);
    if (comma == answer.npos) return;
    answer.remove_prefix(comma + 1);
  }
}

void keep_boxes(const Task& task, const std::string& asked, std::vector<LabelledBox> boxes,
                Lesson& lesson) {
  for (LabelledBox& box : boxes) {
    if (box.label.empty())
      box.label = asked.empty() && task.labels.size() == 1 ? task.labels.front() : asked;
    const std::string* label = task.labels.empty() ? &box.label : find_label(task, box.label);
    if (!label || (!asked.empty() && *label != asked))
      ++lesson.foreign_boxes;
    else
      lesson.boxes.push_back({*label, box.box});
  }
}

}  // namespace

bool wants_labels(const Task& task) {
  if (task.type == TaskType::kClassification) return true;
  return task.type == TaskType::kVideo &&
         (task.head || task.metric == Metric::kTop1 || !task.labels.empty());
}

Result<std::vector<Question>> questions_of(const Task& task, const std::vector<Sample>& inputs) {
  std::vector<Question> questions;
  for (const Sample& input : inputs) {
    const bool own = !input.question.empty();
    if (has_boxes(task.type) && !own && task.labels.empty())
      return invalid(
          task.where + ": task " + task.name +
          " needs \"labels\" that its teacher is asked about, or a question with each input");
    const bool each = task.type == TaskType::kGrounding && !own;
    for (const std::string& label : each ? task.labels : std::vector<std::string>(1)) {
      VALORA_TRY(text, template_question(task, input, label));
      questions.push_back({input, std::move(text), label});
      if (each) questions.back().input.origin += " (" + label + ")";
    }
  }
  return questions;
}

Lesson read_lesson(const Task& task, const Question& question, const std::string& answer) {
  Lesson lesson;
  if (wants_labels(task))
    read_labels(task, answer, lesson);
  else if (has_boxes(task.type))
    keep_boxes(task, question.label, read_boxes(answer, task.boxes), lesson);
  else
    lesson.answer = trimmed(answer);
  return lesson;
}

std::optional<double> confidence_of(std::span<const float> logprobs) {
  if (logprobs.empty()) return std::nullopt;
  const auto add = [](double sum, float logprob) {
    return sum + std::exp(static_cast<double>(logprob));
  };
  return std::accumulate(logprobs.begin(), logprobs.end(), 0.0, add) /
         static_cast<double>(logprobs.size());
}

}  // namespace valora::generator
