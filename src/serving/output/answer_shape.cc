#include "serving/output/answer_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/box_notation.h"
#include "base/json/json.h"
#include "base/labels.h"
#include "grammar/spec.h"

namespace valora::serving {
namespace {

// The decimal numbers from 0 to `most`, as EBNF alternatives.
std::string numbers_to(int most) {
  const std::string digits = std::to_string(most);
  std::string out = "\"0\"";
  for (size_t length = 1; length < digits.size(); ++length)
    out += fmt::format(" | [1-9] [0-9]{{{}}}", length - 1);
  for (size_t i = 0; i < digits.size(); ++i) {
    const char low = i == 0 ? '1' : '0';
    if (digits[i] == low) continue;
    const size_t rest = digits.size() - 1 - i;
    out += " |";
    if (i > 0) out += ' ' + grammar::ebnf_literal(digits.substr(0, i));
    out += fmt::format(" [{}-{}] [0-9]{{{}}}", low, static_cast<char>(digits[i] - 1), rest);
  }
  return out + " | " + grammar::ebnf_literal(digits);
}

std::string label_rule(const Labels& labels, const char* any) {
  std::string rule;
  for (const std::string& label : labels)
    rule += (rule.empty() ? "" : " | ") + grammar::ebnf_literal(label);
  return "label ::= " + (rule.empty() ? any : rule) + "\n";
}

std::string text_grammar(const BoxNotation& notation, const Labels& labels) {
  const std::string number = "number ::= " + numbers_to(notation.scale) + "\n";
  if (!notation.labels)
    return "root ::= \"none\" | box+\n"
           "box ::= \"[\" number \",\" number \",\" number \",\" number \"]\"\n" +
           number;
  return "root ::= \"none\" | thing+\n"
         "thing ::= \"<ref>\" label \"</ref>\" box+\n"
         "box ::= \"<box>(\" number \",\" number \"),(\" number \",\" number \")</box>\"\n" +
         label_rule(labels, "[^<>\\n]{1,64}") + number;
}

// A label as it stands between the quotes of JSON.
std::string inside_quotes(const std::string& label) {
  const std::string text = Json(label).dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

std::string json_grammar(const BoxNotation& notation, const Labels& labels) {
  std::vector<std::string> written;
  for (const std::string& label : labels) written.push_back(inside_quotes(label));
  // The size of the picture is not known here; corners outside are cut.
  const std::string number =
      notation.scale > 0 ? numbers_to(notation.scale) : "\"0\" | [1-9] [0-9]{0,4}";
  return "root ::= list | \"```json\\n\" list \"\\n```\"\n"
         "list ::= \"[]\" | \"[\" space thing (\",\" space thing)* space \"]\"\n"
         "space ::= [ \\n\\t]{0,5}\n"
         "thing ::= \"{\\\"bbox_2d\\\": [\" number \", \" number \", \" number \", \" number \"]"
         ", \\\"label\\\": \\\"\" label \"\\\"}\"\n" +
         label_rule(Labels(std::move(written)), "[^\"\\\\\\x00-\\x1f]{1,64}") +
         "number ::= " + number + "\n";
}

// The grammar, in EBNF, of the text in which a model writes boxes. labels: those that may be
// written; empty: any. The style is kText or kJson: models write marks that are special tokens only
// without a grammar.
std::string box_grammar(const BoxNotation& notation, const Labels& labels) {
  return notation.style == BoxStyle::kJson ? json_grammar(notation, labels)
                                           : text_grammar(notation, labels);
}

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
