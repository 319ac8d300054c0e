#include "base/text/strings.h"
#include "text/chat/chat_formats.h"

namespace valora::text {
namespace {

class Idefics3Chat final : public ChatFormat {
 public:
  explicit Idefics3Chat(bool opens) : opens_(opens) {}

  Result<std::string> render(const std::vector<ChatMessage>& messages,
                             bool add_generation_prompt) const override {
    if (messages.empty()) return invalid("\"messages\" must not be empty", "messages");
    std::string out = opens_ ? "<|im_start|>" : "";
    for (const ChatMessage& message : messages) {
      if (message.role == "user")
        out += "User:";
      else if (message.role == "assistant")
        out += "Assistant:";
      else if (message.role == "system")
        out += "System:";
      else
        return invalid(
            "unknown role \"" + shortened(message.role, 80) + "\" (known: system, user, assistant)",
            "messages");
      if (message.parts.empty() || message.parts.front().kind != ChatPart::Kind::kImage) out += " ";
      for (const ChatPart& part : message.parts)
        out += part.kind == ChatPart::Kind::kText ? part.text : "<image>";
      out += "<end_of_utterance>\n";
    }
    if (add_generation_prompt) out += "Assistant:";
    return out;
  }

 private:
  bool opens_;
};

}  // namespace

std::unique_ptr<ChatFormat> make_idefics3_chat(bool opens) {
  return std::make_unique<Idefics3Chat>(opens);
}

}  // namespace valora::text
