#include "serving/output/answer_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json/json.h"
#include "serving/output/box_grammar.h"

namespace valora::serving {
namespace {

using Kind = AnswerConstraint::Kind;

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// True if a conversation has exactly one picture and no other media.
bool has_one_picture(const Prompt& prompt) {
  const auto* chat = std::get_if<ChatPrompt>(&prompt);
  if (chat == nullptr) return false;
  int pictures = 0, others = 0;
  for (const ChatMessage& message : chat->messages)
    for (const ContentPart& part : message.parts)
      if (const auto* media = std::get_if<MediaRef>(&part))
        ++(media->kind == MediaRef::Kind::kImage ? pictures : others);
  return pictures == 1 && others == 0;
}

class LabelShape final : public AnswerShape {
 public:
  LabelShape(const AnswerForm& form, bool confidence)
      : labels_(form.labels), confidence_(confidence) {}
  std::string push(const std::string& text, double logprob) override {
    text_ += text;
    logprob_ += logprob;
    return {};
  }
  std::string finish() override {
    const bool whole = std::ranges::find(labels_, text_) != labels_.end();
    if (!whole) return "{\"label\": null}";
    return label_json(text_, confidence_ ? std::optional(std::exp(logprob_)) : std::nullopt);
  }

 private:
  const Labels labels_;
  const bool confidence_;
  std::string text_;
  double logprob_ = 0;
};

Status check_boxes(const AnswerConstraint& constraint, const AnswerForm& form,
                   const Prompt& prompt) {
  if (!form.boxes)
    return invalid(
        "it is not known how this model writes boxes: its family was not trained to, and no "
        "manifest names a task of it with boxes",
        constraint.param);
  if (!constraint.choices.empty() && form.boxes->style == BoxStyle::kMarks)
    return invalid("this model writes labels as it was trained to, and cannot be held to a list",
                   constraint.param);
  if (!constraint.choices.empty() && !form.boxes->labels)
    return invalid("the boxes of this task have no labels to choose from", constraint.param);
  if (!has_one_picture(prompt))
    return invalid("boxes are in pixels of one picture: send one, and no other media",
                   constraint.param);
  return {};
}

}  // namespace

Status check_shape(const AnswerConstraint& constraint, const AnswerForm& form,
                   const Prompt& prompt) {
  if (constraint.kind == Kind::kLabels && form.labels.empty())
    return invalid("no labels of this model are known; a manifest names those of its tasks",
                   constraint.param);
  return constraint.kind == Kind::kBoxes ? check_boxes(constraint, form, prompt) : Status();
}

AnswerConstraint constraint_on_text(const AnswerConstraint& constraint, const AnswerForm& form) {
  if (constraint.kind == Kind::kLabels)
    return {Kind::kChoice, {}, form.labels.list(), true, constraint.param};
  if (constraint.kind != Kind::kBoxes) return constraint;
  const Labels labels = constraint.choices.empty() ? form.labels : Labels(constraint.choices);
  return {Kind::kEbnf, box_grammar(*form.boxes, labels), {}, true, constraint.param};
}

std::unique_ptr<AnswerShape> label_shape(const AnswerForm& form, const ShapeOutput& output) {
  return std::make_unique<LabelShape>(form, output.confidence);
}

std::string label_json(const std::string& label, std::optional<double> confidence) {
  const std::string more = confidence ? fmt::format(", \"confidence\": {:.4g}", *confidence) : "";
  return fmt::format("{{\"label\": {}{}}}", quoted(label), more);
}

std::string labels_json(const std::vector<std::string>& labels,
                        const std::vector<double>& confidences) {
  std::string out, more;
  for (const std::string& label : labels) out += (out.empty() ? "" : ", ") + quoted(label);
  for (const double one : confidences)
    more += fmt::format("{}{:.4g}", more.empty() ? "" : ", ", one);
  if (!confidences.empty()) more = ", \"confidences\": [" + more + "]";
  return "{\"labels\": [" + out + "]" + more + "}";
}

}  // namespace valora::serving
