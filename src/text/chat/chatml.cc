#include "text/chat/chat.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text/strings.h"

namespace valora::text {
namespace {

constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};

class ChatMl final : public ChatFormat {
 public:
  ChatMl(std::string default_system, ChatMlStyle style)
      : default_system_(std::move(default_system)), style_(std::move(style)) {}

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
  void append_turn(std::string& out, const std::string& role, const std::string& content) const {
    out += "<|im_start|>" + role + "\n" + content + style_.end_of_turn;
  }

  std::string content(const ChatMessage& message) const {
    std::string out;
    for (const ChatPart& part : message.parts) {
      switch (part.kind) {
        case ChatPart::Kind::kText: out += part.text; break;
        case ChatPart::Kind::kImage: out += style_.image; break;
        case ChatPart::Kind::kVideo: out += style_.video; break;
      }
    }
    return out;
  }

  std::string default_system_;
  ChatMlStyle style_;
};

}  // namespace

std::unique_ptr<ChatFormat> make_chatml(std::string default_system, ChatMlStyle style) {
  return std::make_unique<ChatMl>(std::move(default_system), std::move(style));
}

}  // namespace valora::text
