#include "base/text/strings.h"
#include "jinja/values/text_ops.h"
#include "text/chat/chat_formats.h"

namespace valora::text {
namespace {

// The marks around turns in one kind of template.
struct MistralMarks {
  const char* user;
  const char* user_end;
  const char* assistant;
  bool trims = false;  // strip white space around answers
};

MistralMarks marks_of(MistralChat kind) {
  switch (kind) {
    case MistralChat::kText: return {" [INST] ", " [/INST]", " "};
    case MistralChat::kTokens: return {"[INST] ", "[/INST]", " ", true};
    case MistralChat::kTekken:
    case MistralChat::kTekkenSystem: break;
  }
  return {"[INST]", "[/INST]", ""};
}

class MistralFormat final : public ChatFormat {
 public:
  MistralFormat(MistralChat kind, std::string image)
      : kind_(kind), marks_(marks_of(kind)), image_(std::move(image)) {}

  Result<std::string> render(const std::vector<ChatMessage>& messages, bool) const override {
    if (messages.empty()) return invalid("\"messages\" must not be empty", "messages");
    const size_t first = messages[0].role == "system" ? 1 : 0;
    const std::string system = first > 0 ? joined_text(messages[0]) : "";
    const size_t with_system = first > 0 ? turn_with_system(messages) : messages.size();
    std::string out = "<s>";
    if (first > 0 && kind_ == MistralChat::kTekkenSystem)
      out += "[SYSTEM_PROMPT]" + system + "[/SYSTEM_PROMPT]";
    for (size_t i = first; i < messages.size(); ++i) {
      const ChatMessage& message = messages[i];
      if (message.role != "user" && message.role != "assistant")
        return invalid("unknown role \"" + shortened(message.role, 80) +
                           "\" (known: a first system, user, assistant)",
                       "messages");
      if ((message.role == "user") != ((i - first) % 2 == 0))
        return invalid("conversation roles must alternate user/assistant/user/assistant/…",
                       "messages");
      const std::string content = with_images(message);
      if (message.role == "user")
        out += marks_.user + (i == with_system ? system + "\n\n" : std::string()) + content +
               marks_.user_end;
      else
        out += marks_.assistant +
               (marks_.trims ? std::string(jinja::strip(content, jinja::Side::kBoth)) : content) +
               "</s>";
    }
    return out;
  }

 private:
  std::string with_images(const ChatMessage& message) const {
    std::string out;
    for (const ChatPart& part : message.parts)
      out += part.kind == ChatPart::Kind::kImage ? image_ : part.text;
    return out;
  }

  // Index of the user turn that includes the system prompt; messages.size() if none.
  size_t turn_with_system(const std::vector<ChatMessage>& messages) const {
    if (kind_ == MistralChat::kTekkenSystem) return messages.size();
    if (kind_ == MistralChat::kText) return 1;
    for (size_t i = messages.size(); i-- > 0;)
      if (messages[i].role == "user") return i;
    return messages.size();
  }

  MistralChat kind_;
  MistralMarks marks_;
  std::string image_;
};

}  // namespace

std::unique_ptr<ChatFormat> make_mistral_chat(MistralChat kind, std::string image) {
  return std::make_unique<MistralFormat>(kind, std::move(image));
}

}  // namespace valora::text
