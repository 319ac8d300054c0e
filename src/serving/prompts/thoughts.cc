#include "serving/prompts/thoughts.h"

#include <algorithm>

#include "base/json.h"

namespace valora::serving {
namespace {

bool has_end_mark(const std::string& text) {
  return std::ranges::any_of(
      kThoughtMarks, [&](const ThoughtMarks& marks) { return text.find(marks.end) != text.npos; });
}

// A structural tag that begins where the answer chooses.
bool is_triggered(const std::string& text) {
  const Json tag = Json::parse(text, nullptr, false);
  if (!tag.is_object()) return false;
  if (tag.contains("triggers")) return true;  // vLLM's older form
  const auto format = tag.find("format");
  if (format == tag.end() || !format->is_object() || !format->contains("type")) return false;
  return (*format)["type"] == "triggered_tags" || (*format)["type"] == "any_text";
}

}  // namespace

bool allows_thought(const AnswerConstraint& form) {
  using Kind = AnswerConstraint::Kind;
  switch (form.kind) {
    case Kind::kLabels:
    case Kind::kBoxes: return true;
    case Kind::kStructuralTag: return is_triggered(form.text) || has_end_mark(form.text);
    case Kind::kRegex:
    case Kind::kEbnf: return has_end_mark(form.text);
    case Kind::kChoice: return std::ranges::any_of(form.choices, has_end_mark);
    case Kind::kJsonObject:
    case Kind::kJsonSchema: return false;
  }
  return false;
}

Error form_within_thought(const AnswerConstraint& form) {
  return invalid(
      "the chat template begins the answer with a thought, in which the form would hold: send "
      "\"chat_template_kwargs\": {\"enable_thinking\": false}, or ask without a form",
      form.param);
}

}  // namespace valora::serving
