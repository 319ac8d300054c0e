#include "text/chat.h"

#include "base/strings.h"

namespace valora::text {

Result<std::string> ChatFormat::render(const std::vector<ChatMessage>& messages,
                                       bool add_generation_prompt, const Json& variables) const {
  static const std::string kParam = "chat_template_kwargs";
  if (variables.is_null()) return render(messages, add_generation_prompt);
  if (!variables.is_object()) return invalid("\"" + kParam + "\" must be an object", kParam);
  for (const auto& [name, value] : variables.items()) {
    if (name != "add_generation_prompt")
      return invalid("this model has no chat template: \"" + kParam + "\" cannot set \"" +
                         shortened(name, 80) + "\"",
                     kParam);
    if (!value.is_boolean())
      return invalid("\"add_generation_prompt\" must be true or false", kParam);
    add_generation_prompt = value.get<bool>();
  }
  return render(messages, add_generation_prompt);
}

}  // namespace valora::text
