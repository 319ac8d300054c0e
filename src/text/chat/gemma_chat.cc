#include "base/text/strings.h"
#include "text/chat/chat_formats.h"

namespace valora::text {
namespace {

constexpr std::string_view kSpace = " \n\r\t\f\v";

std::string stripped(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

std::string content_of(const ChatMessage& message) {
  std::string content;
  for (const ChatPart& part : message.parts)
    content += part.kind == ChatPart::Kind::kText ? stripped(part.text) : "<start_of_image>";
  return content;
}

class GemmaChat final : public ChatFormat {
 public:
  Result<std::string> render(const std::vector<ChatMessage>& messages,
                             bool add_generation_prompt) const override {
    if (messages.empty()) return invalid("\"messages\" must not be empty", "messages");
    const bool system = messages.front().role == "system";
    std::string out = "<bos>";
    for (size_t i = system ? 1 : 0; i < messages.size(); ++i) {
      const bool user = (i - (system ? 1 : 0)) % 2 == 0;
      if (messages[i].role != (user ? "user" : "assistant"))
        return invalid(
            "the roles of \"messages\" must alternate user and assistant, after at most "
            "one system message",
            "messages");
      out += std::string("<start_of_turn>") + (user ? "user\n" : "model\n");
      // Not stripped, as in the published template.
      if (system && i == 1)
        for (const ChatPart& part : messages.front().parts) out += part.text;
      if (system && i == 1) out += "\n\n";
      out += content_of(messages[i]) + "<end_of_turn>\n";
    }
    if (add_generation_prompt) out += "<start_of_turn>model\n";
    return out;
  }
};

}  // namespace

std::unique_ptr<ChatFormat> make_gemma_chat() { return std::make_unique<GemmaChat>(); }

}  // namespace valora::text
