// Renders chat conversations as prompt text. A format writes each image or video as its family's
// placeholder: one per item, which is expanded to the number of visual tokens after tokenizing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace valora::text {

struct ChatPart {
  enum class Kind { kText, kImage, kVideo };
  Kind kind = Kind::kText;
  std::string text;  // of a text part
};

struct ChatMessage {
  std::string role;
  std::vector<ChatPart> parts;
};

class ChatFormat {
 public:
  virtual ~ChatFormat() = default;
  // add_generation_prompt starts the assistant's turn. Errors: unknown role, no messages, an error
  // raised by a template. Thread-safe.
  virtual Result<std::string> render(const std::vector<ChatMessage>& messages,
                                     bool add_generation_prompt) const = 0;
  // With the request's own variables (chat_template_kwargs): an object or null. A built-in format
  // accepts only add_generation_prompt, which overrides the argument. A template accepts any name.
  virtual Result<std::string> render(const std::vector<ChatMessage>& messages,
                                     bool add_generation_prompt, const Json& variables) const;
};

// Qwen2-VL's ChatML: a default system prompt if the first message is not a system message,
// placeholders <|vision_start|><|image_pad|><|vision_end|> and
// <|vision_start|><|video_pad|><|vision_end|>. An empty default_system writes no default system
// turn.
std::unique_ptr<ChatFormat> make_chatml(
    std::string default_system = "You are a helpful assistant.");

}  // namespace valora::text
