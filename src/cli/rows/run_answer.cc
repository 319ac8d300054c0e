#include "cli/rows/run_answer.h"

#include <fmt/format.h>

#include "base/json/parse_ordered.h"
#include "server/openai/json_text.h"

namespace valora::cli {
namespace {

using server::to_text;

std::string string_at(const OrderedJson& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string message_of(const OrderedJson& body, int status) {
  const auto error = body.find("error");
  std::string message =
      error != body.end() && error->is_object() ? string_at(*error, "message") : std::string();
  return message.empty() ? fmt::format("the status is {}", status) : message;
}

// The text of a chat or a completion; the whole body of other answers.
std::string text_of_body(const OrderedJson& body) {
  const auto choices = body.find("choices");
  if (choices == body.end() || !choices->is_array() || choices->empty()) return to_text(body);
  const OrderedJson& choice = choices->front();
  const auto message = choice.find("message");
  return message == choice.end() ? string_at(choice, "text") : string_at(*message, "content");
}

// The label, or the labels of a head with several, one after the other.
std::string label_text(const OrderedJson& value) {
  if (!value.is_object()) return {};
  if (value.contains("label")) return string_at(value, "label");
  std::string text;
  if (const auto labels = value.find("labels"); labels != value.end() && labels->is_array())
    for (const OrderedJson& label : *labels)
      if (label.is_string()) text += (text.empty() ? "" : "; ") + label.get<std::string>();
  return text;
}

}  // namespace

RunAnswer read_answer(const std::string& name, const server::HttpResponse& response,
                      AnswerKind kind) {
  RunAnswer answer{.name = name, .status = response.status};
  const OrderedJson body = parse_ordered(response.body);
  if (body.is_discarded() || !body.is_object() || response.status != 200) {
    answer.error = body.is_object() ? message_of(body, response.status) : "the answer is no JSON";
    return answer;
  }
  answer.text = text_of_body(body);
  if (const auto choices = body.find("choices"); choices != body.end() && !choices->empty())
    answer.finish_reason = string_at(choices->front(), "finish_reason");
  if (kind == AnswerKind::kText) return answer;
  answer.value = parse_ordered(answer.text);
  if (answer.value.is_discarded()) answer.value = nullptr;
  if (kind == AnswerKind::kLabels) answer.text = label_text(answer.value);
  return answer;
}

OrderedJson answer_json(const RunAnswer& answer, AnswerKind kind) {
  OrderedJson row = {{"name", answer.name}};
  if (!answer.error.empty()) {
    row["error"] = {{"status", answer.status}, {"message", answer.error}};
    return row;
  }
  if (kind != AnswerKind::kBoxes) row["answer"] = answer.text;
  if (kind == AnswerKind::kBoxes) row["boxes"] = answer.value;
  if (kind == AnswerKind::kLabels && answer.value.is_object())
    for (const auto& [key, value] : answer.value.items()) row[key] = value;
  row["finish_reason"] = answer.finish_reason;
  return row;
}

std::vector<std::string> csv_head(AnswerKind kind) {
  if (kind == AnswerKind::kText) return {"name", "answer", "error"};
  return {"name", "answer", kind == AnswerKind::kLabels ? "label" : "boxes", "error"};
}

std::vector<std::string> csv_of(const RunAnswer& answer, AnswerKind kind) {
  if (kind == AnswerKind::kText) return {answer.name, answer.text, answer.error};
  if (kind == AnswerKind::kLabels) return {answer.name, answer.text, answer.text, answer.error};
  const std::string boxes = answer.error.empty() ? to_text(answer.value) : "";
  return {answer.name, answer.text, boxes, answer.error};
}

}  // namespace valora::cli
