#include "lab/serve/answer_json.h"

#include "base/text/strings.h"

namespace valora::bench {

std::string error_text(const Json& answer, size_t max_bytes) {
  const Json& error = answer.is_object() && answer.contains("error") ? answer["error"] : answer;
  if (error.is_object() && error.contains("message") && error["message"].is_string())
    return shortened(error["message"].get<std::string>(), max_bytes);
  return shortened(error.dump(-1, ' ', false, Json::error_handler_t::replace), max_bytes);
}

const Json* first_choice(const Json& answer) {
  const auto choices = answer.find("choices");
  const bool there = choices != answer.end() && choices->is_array() && !choices->empty() &&
                     choices->front().is_object();
  return there ? &choices->front() : nullptr;
}

std::string text_of(const Json& choice) {
  const auto delta = choice.find("delta");
  const Json& holder = delta == choice.end() ? choice : *delta;
  if (!holder.is_object()) return {};
  std::string all;
  for (const char* key : {"reasoning", delta == choice.end() ? "text" : "content"})
    if (const auto text = holder.find(key); text != holder.end() && text->is_string())
      all += text->get_ref<const std::string&>();
  return all;
}

}  // namespace valora::bench
