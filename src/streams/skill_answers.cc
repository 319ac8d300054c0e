#include "streams/skill_answers.h"

#include <cmath>

#include "base/json/parse_ordered.h"

namespace valora::streams {
namespace {

const OrderedJson& at(const OrderedJson& object, const char* key) {
  static const OrderedJson none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::optional<AnswerBox> read_box(const OrderedJson& json, double width, double height) {
  const OrderedJson& corners = at(json, "box");
  if (!corners.is_array() || corners.size() != 4) return std::nullopt;
  for (const OrderedJson& corner : corners)
    if (!corner.is_number()) return std::nullopt;
  AnswerBox box;
  box.x0 = corners[0].get<double>() / width;
  box.y0 = corners[1].get<double>() / height;
  box.x1 = corners[2].get<double>() / width;
  box.y1 = corners[3].get<double>() / height;
  if (at(json, "label").is_string()) box.label = json["label"].get<std::string>();
  if (at(json, "confidence").is_number()) box.confidence = json["confidence"].get<double>();
  return box;
}

void read_boxes(const std::string& text, double width, double height, SkillAnswer& answer) {
  if (text.empty() || (text.front() != '[' && text.front() != '{')) return;
  const OrderedJson json = parse_ordered(text);
  const OrderedJson& list = json.is_object() ? at(json, "boxes") : json;
  if (!list.is_array()) return;
  for (const OrderedJson& one : list)
    if (auto box = read_box(one, width, height)) answer.boxes.push_back(std::move(*box));
}

// {"label": "dog"}, the answer in the form of labels, counts as "dog".
std::string label_or(const std::string& text) {
  if (!text.starts_with("{")) return text;
  const OrderedJson json = parse_ordered(text);
  return json.is_object() && json.size() == 1 && at(json, "label").is_string()
             ? json["label"].get<std::string>()
             : text;
}

SkillResult read_one(const OrderedJson& json, double width, double height) {
  SkillResult out;
  const OrderedJson& choices = at(json, "choices");
  const OrderedJson& choice = choices.is_array() && !choices.empty() ? choices[0] : OrderedJson();
  const OrderedJson& content = at(at(choice, "message"), "content");
  if (!at(json, "error").is_null() || !content.is_string()) {
    out.failed = true;
    out.shown = {{"error", at(json, "error")}};
    return out;
  }
  const std::string text = content.get<std::string>();
  out.shown = {{"content", text}, {"finish_reason", at(choice, "finish_reason")}};
  out.answer.text = label_or(text);
  const OrderedJson& tokens = at(at(choice, "logprobs"), "content");
  if (tokens.is_array() && !tokens.empty() && at(tokens[0], "logprob").is_number()) {
    out.answer.score = std::exp(tokens[0]["logprob"].get<double>());
    out.shown["score"] = *out.answer.score;
  }
  read_boxes(text, width, height, out.answer);
  return out;
}

}  // namespace

Result<std::map<std::string, SkillResult>> read_skill_answers(std::string_view text, int width,
                                                              int height) {
  const OrderedJson whole = parse_ordered(text);
  const OrderedJson& skills = at(whole, "skills");
  if (!skills.is_object()) return internal("the answer has no skills");
  std::map<std::string, SkillResult> out;
  for (const auto& [name, answer] : skills.items())
    out[name] = read_one(answer, std::max(1, width), std::max(1, height));
  return out;
}

}  // namespace valora::streams
