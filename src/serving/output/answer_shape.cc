#include "serving/output/answer_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/json/json.h"
#include "grammar/ebnf.h"

namespace valora::serving {
namespace {

using Kind = AnswerConstraint::Kind;

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

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

std::string box_grammar(const AnswerForm& form) {
  const std::string number = "number ::= " + numbers_to(form.boxes->scale) + "\n";
  if (!form.boxes->labels)
    return "root ::= \"none\" | box+\n"
           "box ::= \"[\" number \",\" number \",\" number \",\" number \"]\"\n" +
           number;
  std::string labels;
  for (const std::string& label : form.labels)
    labels += (labels.empty() ? "" : " | ") + grammar::ebnf_literal(label);
  if (labels.empty()) labels = "[^<>\\n]{1,64}";
  return "root ::= \"none\" | thing+\n"
         "thing ::= \"<ref>\" label \"</ref>\" box+\n"
         "label ::= " +
         labels +
         "\n"
         "box ::= \"<box>(\" number \",\" number \"),(\" number \",\" number \")</box>\"\n" +
         number;
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
  explicit LabelShape(const AnswerForm& form) : labels_(form.labels) {}
  std::string push(const std::string& text) override {
    text_ += text;
    return {};
  }
  std::string finish() override {
    const bool whole = std::ranges::find(labels_, text_) != labels_.end();
    return whole ? label_json(text_) : "{\"label\": null}";
  }

 private:
  const Labels labels_;
  std::string text_;
};

// Parses text that box_grammar() allows.
class BoxShape final : public AnswerShape {
 public:
  BoxShape(const BoxNotation& notation, PictureSize picture)
      : notation_(notation), picture_(picture) {}

  std::string push(const std::string& text) override {
    text_ += text;
    std::string out;
    for (;;) {
      const size_t end = text_.find(notation_.labels ? '>' : ']', searched_);
      if (end == std::string::npos) break;
      searched_ = end + 1;
      if (!take(std::string_view(text_).substr(0, searched_), out)) continue;
      text_.erase(0, searched_);
      searched_ = 0;
    }
    searched_ = text_.size();
    return out;
  }

  std::string finish() override { return any_ ? "]" : "[]"; }

 private:
  // Returns true if `part` is a complete label or box.
  bool take(std::string_view part, std::string& out) {
    if (part.starts_with("<ref>")) {
      if (!part.ends_with("</ref>")) return false;
      label_ = quoted(std::string(part.substr(5, part.size() - 11)));
      return true;
    }
    if (part.starts_with("<box>") && !part.ends_with("</box>")) return false;
    std::array<int, 4> numbers{};
    size_t count = 0;
    for (const char* c = part.data(); c != part.data() + part.size();) {
      if (*c < '0' || *c > '9') {
        ++c;
      } else {
        int value = 0;
        c = std::from_chars(c, part.data() + part.size(), value).ptr;
        if (count < numbers.size()) numbers[count++] = value;
      }
    }
    if (count == numbers.size() && numbers[0] < numbers[2] && numbers[1] < numbers[3])
      add(numbers, out);
    return true;
  }

  void add(const std::array<int, 4>& numbers, std::string& out) {
    out += any_ ? ", " : "[";
    any_ = true;
    out += "{\"label\": " + label_ + ", \"box\": [";
    for (size_t i = 0; i < numbers.size(); ++i) {
      const int side = i % 2 == 0 ? picture_.width : picture_.height;
      const double pixels = static_cast<double>(numbers[i]) * side / notation_.scale;
      out += fmt::format("{}{:.1f}", i == 0 ? "" : ", ", pixels);
    }
    out += "]}";
  }

  const BoxNotation notation_;
  const PictureSize picture_;
  std::string text_, label_ = "null";
  size_t searched_ = 0;
  bool any_ = false;
};

}  // namespace

Status check_shape(const AnswerConstraint& constraint, const AnswerForm& form,
                   const Prompt& prompt) {
  if (constraint.kind == Kind::kLabels && form.labels.empty())
    return invalid("no labels of this model are known; a manifest names those of its tasks",
                   constraint.param);
  if (constraint.kind != Kind::kBoxes) return {};
  if (!form.boxes)
    return invalid("this model does not answer with boxes; a manifest names the tasks that do",
                   constraint.param);
  if (!has_one_picture(prompt))
    return invalid("boxes are in pixels of one picture: send one, and no other media",
                   constraint.param);
  return {};
}

AnswerConstraint constraint_on_text(const AnswerConstraint& constraint, const AnswerForm& form) {
  if (constraint.kind == Kind::kLabels)
    return {Kind::kChoice, {}, form.labels.list(), true, constraint.param};
  if (constraint.kind == Kind::kBoxes)
    return {Kind::kEbnf, box_grammar(form), {}, true, constraint.param};
  return constraint;
}

std::unique_ptr<AnswerShape> label_shape(const AnswerForm& form) {
  return std::make_unique<LabelShape>(form);
}

std::unique_ptr<AnswerShape> box_shape(const BoxNotation& notation, PictureSize picture) {
  return std::make_unique<BoxShape>(notation, picture);
}

std::string label_json(const std::string& label) { return "{\"label\": " + quoted(label) + "}"; }

std::string labels_json(const std::vector<std::string>& labels) {
  std::string out;
  for (const std::string& label : labels) out += (out.empty() ? "" : ", ") + quoted(label);
  return "{\"labels\": [" + out + "]}";
}

}  // namespace valora::serving
