// Renders a chat template. Input parts: template, variables (JSON), conversation. Each line of the
// conversation is a message whose first character is the role.
#include "text/chat/chat_template.h"

#include "check.h"
#include "input.h"

using namespace valora;
using text::ChatMessage;
using text::ChatPart;

namespace {

std::string role_of(char c) {
  switch (c) {
    case 's': return "system";
    case 'a': return "assistant";
    case 't': return "tool";
    default: return "user";
  }
}

// In a message, '#' stands for an image and '%' for a video.
ChatMessage message_of(std::string_view line) {
  ChatMessage message{role_of(line.empty() ? 'u' : line[0]), {}};
  for (const char c : line.substr(line.empty() ? 0 : 1)) {
    if (c == '#')
      message.parts.push_back({ChatPart::Kind::kImage, ""});
    else if (c == '%')
      message.parts.push_back({ChatPart::Kind::kVideo, ""});
    else if (message.parts.empty() || message.parts.back().kind != ChatPart::Kind::kText)
      message.parts.push_back({ChatPart::Kind::kText, std::string(1, c)});
    else
      message.parts.back().text += c;
  }
  return message;
}

std::vector<ChatMessage> conversation_of(std::string_view text) {
  std::vector<ChatMessage> messages;
  while (!text.empty() && messages.size() < 32) {
    const size_t end = text.find('\n');
    messages.push_back(message_of(text.substr(0, end)));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return messages;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const std::string_view source = input.part();
  const auto variables = parse_json(input.part(), "variables");
  const std::vector<ChatMessage> messages = conversation_of(input.rest());

  const text::ChatTemplateSettings settings{
      .special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}},
      .image_placeholder = "<image>",
      .video_placeholder = "<video>",
      .now = [] {
        return std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));
      }};
  const auto format = text::make_chat_template(source, "fuzz", settings);
  if (!format.ok()) {
    FUZZ_CHECK(!format.error().message.empty());
    return 0;
  }
  const Json values = variables.ok() && variables->is_object() ? *variables : Json();
  for (const bool add_generation_prompt : {false, true}) {
    const auto prompt = (*format)->render(messages, add_generation_prompt, values);
    const auto again = (*format)->render(messages, add_generation_prompt, values);
    FUZZ_CHECK(prompt.ok() == again.ok());
    if (prompt.ok())
      FUZZ_CHECK(*prompt == *again);
    else
      FUZZ_CHECK(!prompt.error().message.empty());
  }
  return 0;
}
