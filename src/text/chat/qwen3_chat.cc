#include <string_view>

#include "base/text/strings.h"
#include "text/chat/chat_formats.h"

namespace valora::text {
namespace {

constexpr std::string_view kThink = kThinkTags.begin, kThinkEnd = kThinkTags.end;

std::string_view without_newlines(std::string_view text, bool front, bool back) {
  while (front && text.starts_with('\n')) text.remove_prefix(1);
  while (back && text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

// Tool results in a user turn (text/chat/tool_prompt.h) do not count as a question.
bool is_question(const ChatMessage& message) {
  const std::string text = joined_text(message);
  return message.role == "user" &&
         !(text.starts_with("<tool_response>") && text.ends_with("</tool_response>"));
}

// An answer split into its thought and the rest.
struct Answer {
  std::string_view thought, content;
};

Answer cut_answer(std::string_view text) {
  const size_t first = text.find(kThinkEnd);
  if (first == std::string_view::npos) return {{}, text};
  std::string_view thought = text.substr(0, first);
  if (const size_t begin = without_newlines(thought, false, true).rfind(kThink);
      begin != std::string_view::npos)
    thought.remove_prefix(begin + kThink.size());
  const std::string_view content = text.substr(text.rfind(kThinkEnd) + kThinkEnd.size());
  return {without_newlines(thought, true, true), without_newlines(content, true, false)};
}

// The texts with placeholders for images and videos between them.
std::string with_placeholders(const ChatMessage& message) {
  const ChatMlStyle style;
  std::string out;
  for (const ChatPart& part : message.parts)
    out += part.kind == ChatPart::Kind::kText    ? part.text
           : part.kind == ChatPart::Kind::kImage ? style.image
                                                 : style.video;
  return out;
}

class Qwen3Format final : public ChatFormat {
 public:
  explicit Qwen3Format(std::string opening) : opening_(std::move(opening)) {}

  Result<std::string> render(const std::vector<ChatMessage>& messages,
                             bool add_generation_prompt) const override {
    if (messages.empty()) return invalid("\"messages\" must not be empty", "messages");
    size_t question = messages.size() - 1;
    for (size_t i = messages.size(); i-- > 0;)
      if (is_question(messages[i])) {
        question = i;
        break;
      }
    std::string out;
    for (size_t i = 0; i < messages.size(); ++i) {
      const ChatMessage& message = messages[i];
      const std::string text = with_placeholders(message);
      out += "<|im_start|>" + message.role + "\n";
      if (message.role == "assistant") {
        const Answer answer = message.thought
                                  ? Answer{without_newlines(*message.thought, true, true), text}
                                  : cut_answer(text);
        if (i > question && (i + 1 == messages.size() || !answer.thought.empty()))
          out.append(kThink)
              .append("\n")
              .append(answer.thought)
              .append("\n")
              .append(kThinkEnd)
              .append("\n\n")
              .append(without_newlines(answer.content, true, false));
        else
          out += answer.content;
      } else if (message.role == "user" || message.role == "system") {
        out += text;
      } else {
        return invalid(
            "unknown role \"" + shortened(message.role, 80) + "\" (known: system, user, assistant)",
            "messages");
      }
      out += "<|im_end|>\n";
    }
    if (add_generation_prompt) out += "<|im_start|>assistant\n" + opening_;
    return out;
  }

  Result<std::string> render(const std::vector<ChatMessage>& messages, bool add_generation_prompt,
                             const Json& variables, const OrderedJson& tools) const override {
    VALORA_TRY(thinks, reads_thinking(variables));
    const Qwen3Format without_thought("<think>\n\n</think>\n\n");
    return (thinks ? *this : without_thought)
        .ChatFormat::render(messages, add_generation_prompt, variables, tools);
  }

  bool takes_variable(const std::string& name) const override {
    return name == kEnableThinking || ChatFormat::takes_variable(name);
  }
  const ThoughtMarks* thought_marks() const override { return &kThinkTags; }

 private:
  static constexpr const char* kEnableThinking = "enable_thinking";

  static Result<bool> reads_thinking(const Json& variables) {
    if (!variables.is_object() || !variables.contains(kEnableThinking)) return true;
    const Json& value = variables.at(kEnableThinking);
    if (!value.is_boolean())
      return invalid("\"chat_template_kwargs.enable_thinking\" must be true or false",
                     "chat_template_kwargs");
    return value.get<bool>();
  }

  std::string opening_;
};

}  // namespace

std::unique_ptr<ChatFormat> make_qwen3_chat(std::string opening) {
  return std::make_unique<Qwen3Format>(std::move(opening));
}

}  // namespace valora::text
