#include "generator/data/sample_checks.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text/strings.h"

namespace valora::generator {
namespace {

std::string of_type(const Task& task) {
  return fmt::format(", which {} needs", task_type_name(task.type));
}

bool is_one_picture(const Sample& sample) {
  return sample.media.size() == 1 && sample.media[0].kind == Medium::Kind::kImage;
}

bool has_video(const Sample& sample) {
  return std::any_of(sample.media.begin(), sample.media.end(),
                     [](const Medium& medium) { return medium.kind == Medium::Kind::kVideo; });
}

Error unknown_label(const Task& task, const std::string& label) {
  return invalid(fmt::format("the label \"{}\" is not one of the task's ({})", shortened(label, 60),
                             shortened(fmt::format("{}", fmt::join(task.labels, ", ")))),
                 "label");
}

}  // namespace

Result<Box> box_within(double x0, double y0, double x1, double y1, double width, double height) {
  const double slack = width == 1 && height == 1 ? 1e-6 : 0.5;
  const std::string box = fmt::format("the box [{}, {}, {}, {}]", x0, y0, x1, y1);
  // Written so that NaN is rejected too.
  if (!(x0 < x1 && y0 < y1)) return invalid(box + " has no area");
  if (!(x0 >= -slack && y0 >= -slack && x1 <= width + slack && y1 <= height + slack))
    return invalid(fmt::format("{} is outside the {} x {} picture", box, width, height));
  const auto share = [](double value, double side) { return std::clamp(value / side, 0.0, 1.0); };
  const Box within{share(x0, width), share(y0, height), share(x1, width), share(y1, height)};
  if (!(within.x0 < within.x1 && within.y0 < within.y1)) return invalid(box + " has no area");
  return within;
}

SampleChecks::SampleChecks(const Task& task, bool labelled)
    : task_(task), labelled_(labelled), known_(task.labels.begin(), task.labels.end()) {}

Status SampleChecks::check(const Sample& sample) const {
  VALORA_CHECK(check_media(sample));
  if (task_.type == TaskType::kQuestionAnswering && sample.question.empty() &&
      task_.question.empty())
    return invalid("there is no question" + of_type(task_), "question");
  if (!labelled_) return {};
  VALORA_CHECK(check_answer(sample));
  VALORA_CHECK(check_boxes(sample));
  return check_labels(sample);
}

Status SampleChecks::check_media(const Sample& sample) const {
  if (has_boxes(task_.type) && !is_one_picture(sample))
    return invalid("there must be one picture" + of_type(task_));
  if (task_.type == TaskType::kVideo && !has_video(sample))
    return invalid("there is no video" + of_type(task_));
  return {};
}

Status SampleChecks::check_answer(const Sample& sample) const {
  if (has_boxes(task_.type)) return {};
  const bool answered = !sample.answer.empty() || !sample.references.empty();
  const bool wants_label =
      task_.type == TaskType::kClassification || task_.head || task_.metric == Metric::kTop1;
  if (wants_label && sample.labels.empty())
    return invalid(task_.type == TaskType::kClassification
                       ? "there is no label" + of_type(task_)
                       : "there is no label, which a head and top1 need",
                   "label");
  if (!has_labels(task_.type) && !answered)
    return invalid("there is no answer" + of_type(task_), "answer");
  if (!answered && sample.labels.empty())
    return invalid("there is neither a label nor an answer" + of_type(task_), "label");
  return {};
}

Status SampleChecks::check_boxes(const Sample& sample) const {
  if (!has_boxes(task_.type)) return {};
  if (task_.type == TaskType::kGrounding && sample.boxes.empty())
    return invalid("there is no box" + of_type(task_), "boxes");
  for (const LabelledBox& box : sample.boxes) {
    if (task_.type == TaskType::kDetection && task_.boxes.labels && box.label.empty())
      return invalid("a box has no label" + of_type(task_), "boxes");
    if (!box.label.empty() && !is_known(box.label)) return unknown_label(task_, box.label);
  }
  return {};
}

Status SampleChecks::check_labels(const Sample& sample) const {
  const bool several = task_.head && task_.head->multi_label;
  if (has_labels(task_.type) && sample.labels.size() > 1 && !several)
    return invalid("there are several labels, but the task has no multi_label head", "labels");
  std::unordered_set<std::string_view> seen;
  for (const std::string& label : sample.labels) {
    if (!is_known(label)) return unknown_label(task_, label);
    if (!seen.insert(label).second)
      return invalid("the label \"" + shortened(label, 60) + "\" is repeated", "labels");
  }
  return {};
}

}  // namespace valora::generator
