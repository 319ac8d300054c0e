#include <algorithm>
#include <array>
#include <string_view>

#include "base/text/strings.h"
#include "jinja/values/text_ops.h"
#include "text/chat/chat_formats.h"

namespace valora::text {
namespace {

// A message's text without surrounding white space. The engine has already refused media for text
// models.
std::string content(const ChatMessage& message) {
  return std::string(
      jinja::strip(joined_text(message), jinja::Side::kBoth));  // as the published templates do
}

Error unknown_role(const std::string& role, const char* known) {
  return invalid("unknown role \"" + shortened(role, 80) + "\" (known: " + known + ")", "messages");
}

class Llama2Chat final : public ChatFormat {
 public:
  Result<std::string> render(const std::vector<ChatMessage>& messages, bool) const override {
    if (messages.empty()) return invalid("\"messages\" must not be empty", "messages");
    std::string out, system;
    size_t first = 0;
    if (messages[0].role == "system") {
      system = "<<SYS>>\n" + content(messages[0]) + "\n<</SYS>>\n\n";
      first = 1;
    }
    for (size_t i = first; i < messages.size(); ++i) {
      const ChatMessage& message = messages[i];
      if (message.role != "user" && message.role != "assistant")
        return unknown_role(message.role, "a first system, user, assistant");
      if ((message.role == "user") != ((i - first) % 2 == 0))
        return invalid("conversation roles must alternate user/assistant/user/assistant/…",
                       "messages");
      if (message.role == "user")
        out += "<s>[INST] " + (i == first ? system : std::string()) + content(message) + " [/INST]";
      else
        out += " " + content(message) + " </s>";
    }
    return out;
  }
};

class Llama3Chat final : public ChatFormat {
 public:
  Result<std::string> render(const std::vector<ChatMessage>& messages,
                             bool add_generation_prompt) const override {
    constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};
    if (messages.empty()) return invalid("\"messages\" must not be empty", "messages");
    std::string out = "<|begin_of_text|>";
    for (const ChatMessage& message : messages) {
      if (std::ranges::find(kRoles, message.role) == kRoles.end())
        return unknown_role(message.role, "system, user, assistant, tool");
      out += header(message.role == "tool" ? "ipython" : message.role) + content(message) +
             "<|eot_id|>";
    }
    if (add_generation_prompt) out += header("assistant");
    return out;
  }

 private:
  static std::string header(const std::string& role) {
    return "<|start_header_id|>" + role + "<|end_header_id|>\n\n";
  }
};

}  // namespace

std::unique_ptr<ChatFormat> make_llama2_chat() { return std::make_unique<Llama2Chat>(); }
std::unique_ptr<ChatFormat> make_llama3_chat() { return std::make_unique<Llama3Chat>(); }

}  // namespace valora::text
