#include "text/chat/chat.h"

#include <algorithm>

#include "base/text/strings.h"
#include "jinja/values/text_ops.h"

namespace valora::text {

Result<std::string> ChatFormat::render(const std::vector<ChatMessage>& messages,
                                       bool add_generation_prompt, const Json& variables,
                                       const OrderedJson& tools) const {
  static const std::string kParam = "chat_template_kwargs";
  if (!tools.is_null()) return internal("tools were given to a format that does not support them");
  if (variables.is_null()) return render(messages, add_generation_prompt);
  if (!variables.is_object()) return invalid("\"" + kParam + "\" must be an object", kParam);
  for (const auto& [name, value] : variables.items()) {
    if (!takes_variable(name))
      return invalid("this model has no chat template: \"" + kParam + "\" cannot set \"" +
                         shortened(name, 80) + "\"",
                     kParam);
    if (name != "add_generation_prompt") continue;  // read by the format
    if (!value.is_boolean())
      return invalid("\"add_generation_prompt\" must be true or false", kParam);
    add_generation_prompt = value.get<bool>();
  }
  return render(messages, add_generation_prompt);
}

Result<std::string> render_continued(const ChatFormat& format, std::vector<ChatMessage> messages,
                                     const Json& variables, const OrderedJson& tools) {
  static const std::string kParam = "continue_final_message";
  // The trailing space shows whether the format strips the end of a message.
  static const std::string kMark = "END_OF_THE_LAST_MESSAGE ";
  if (messages.empty()) return invalid("\"messages\" must not be empty", "messages");
  std::vector<ChatPart>& parts = messages.back().parts;
  const auto last =
      std::ranges::find(parts.rbegin(), parts.rend(), ChatPart::Kind::kText, &ChatPart::kind);
  if (last == parts.rend())
    return invalid("\"" + kParam + "\" needs text in the last message", kParam);
  const std::string text(jinja::strip(last->text, jinja::Side::kBoth));
  last->text += kMark;
  VALORA_TRY(rendered, format.render(messages, false, variables, tools));
  const size_t at = rendered.rfind(std::string_view(kMark).substr(0, kMark.size() - 1));
  if (at == std::string::npos || rendered.find(text) == std::string::npos)
    return invalid("\"" + kParam + "\": the chat template left out the last message's text",
                   kParam);
  const bool keeps_space = rendered.compare(at, kMark.size(), kMark) == 0;
  rendered.resize(at);
  if (!keeps_space) rendered = jinja::strip(rendered, jinja::Side::kRight);
  return rendered;
}

std::string joined_text(const ChatMessage& message) {
  std::string text;
  for (const ChatPart& part : message.parts) text += part.text;
  return text;
}

}  // namespace valora::text
