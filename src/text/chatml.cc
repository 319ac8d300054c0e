#include "text/chat.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/strings.h"

namespace valora::text {
namespace {

constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};

class ChatMl final : public ChatFormat {
 public:
  explicit ChatMl(std::string default_system) : default_system_(std::move(default_system)) {}

  Result<std::string> render(const std::vector<ChatMessage>& messages,
                             bool add_generation_prompt) const override {
    if (messages.empty()) return invalid("\"messages\" must not be empty", "messages");
    std::string out;
    if (messages[0].role != "system" && !default_system_.empty())
      append_turn(out, "system", default_system_);
    for (const ChatMessage& message : messages) {
      if (std::ranges::find(kRoles, message.role) == kRoles.end())
        return invalid("unknown role \"" + shortened(message.role, 80) +
                           "\" (known: system, user, assistant, tool)",
                       "messages");
      append_turn(out, message.role, content(message));
    }
    if (add_generation_prompt) out += "<|im_start|>assistant\n";
    return out;
  }

 private:
  static void append_turn(std::string& out, const std::string& role, const std::string& content) {
    out += "<|im_start|>" + role + "\n" + content + "<|im_end|>\n";
  }

  static std::string content(const ChatMessage& message) {
    std::string out;
    for (const ChatPart& part : message.parts) {
      switch (part.kind) {
        case ChatPart::Kind::kText: out += part.text; break;
        case ChatPart::Kind::kImage: out += "<|vision_start|><|image_pad|><|vision_end|>"; break;
        case ChatPart::Kind::kVideo: out += "<|vision_start|><|video_pad|><|vision_end|>"; break;
      }
    }
    return out;
  }

  std::string default_system_;
};

}  // namespace

std::unique_ptr<ChatFormat> make_chatml(std::string default_system) {
  return std::make_unique<ChatMl>(std::move(default_system));
}

}  // namespace valora::text
