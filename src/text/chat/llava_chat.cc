#include "base/text/strings.h"
#include "text/chat/chat_formats.h"

namespace valora::text {
namespace {

class LlavaChat final : public ChatFormat {
 public:
  Result<std::string> render(const std::vector<ChatMessage>& messages,
                             bool add_generation_prompt) const override {
    if (messages.empty()) return invalid("\"messages\" must not be empty", "messages");
    std::string out;
    for (const ChatMessage& message : messages) {
      if (message.role == "user")
        out += "USER: ";
      else if (message.role == "assistant")
        out += "ASSISTANT: ";
      else if (message.role != "system")
        return invalid(
            "unknown role \"" + shortened(message.role, 80) + "\" (known: system, user, assistant)",
            "messages");
      for (const ChatPart& part : message.parts)
        if (part.kind == ChatPart::Kind::kImage) out += "<image>\n";
      for (const ChatPart& part : message.parts)
        if (part.kind == ChatPart::Kind::kText) out += part.text + " ";
    }
    if (add_generation_prompt) out += "ASSISTANT:";
    return out;
  }
};

}  // namespace

std::unique_ptr<ChatFormat> make_llava_chat() { return std::make_unique<LlavaChat>(); }

}  // namespace valora::text
