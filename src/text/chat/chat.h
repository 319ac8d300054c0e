// Renders chat conversations as prompt text. A format writes one placeholder of its family per
// image or video, which is expanded to visual tokens after tokenizing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "base/tool_call_style.h"
#include "text/chat/thought_marks.h"

namespace valora::text {

struct ChatPart {
  enum class Kind { kText, kImage, kVideo };
  Kind kind = Kind::kText;
  std::string text;  // for text parts
};

struct ToolCall {
  std::string id;
  std::string name;
  OrderedJson arguments;  // a JSON object
};

struct ChatMessage {
  std::string role;
  std::vector<ChatPart> parts;
  std::vector<ToolCall> tool_calls = {};
  std::string tool_call_id = {};
  std::string name = {};
  std::optional<std::string> thought = {};  // templates have it under two names
};

// The concatenated texts of a message's parts.
std::string joined_text(const ChatMessage& message);

class ChatFormat {
 public:
  virtual ~ChatFormat() = default;
  // add_generation_prompt: also starts the assistant's turn. Errors: unknown role, no messages, an
  // error raised by a template. Thread-safe.
  virtual Result<std::string> render(const std::vector<ChatMessage>& messages,
                                     bool add_generation_prompt) const = 0;
  // The same with the request's own variables (chat_template_kwargs): an object or null. A built-in
  // format accepts only those of takes_variable(); add_generation_prompt overrides the argument.
  // tools: a list in OpenAI's format, or null; tools and the messages' calls require takes_tools().
  virtual Result<std::string> render(const std::vector<ChatMessage>& messages,
                                     bool add_generation_prompt, const Json& variables,
                                     const OrderedJson& tools = nullptr) const;

  // True if render() writes tools and tool calls. If not, use with_tools_in_text().
  virtual bool takes_tools() const { return false; }
  // Whether a variable of this name may be set. Templates take any.
  virtual bool takes_variable(const std::string& name) const {
    return name == "add_generation_prompt";
  }
  // The marks of the thoughts that it knows; null: none.
  virtual const ThoughtMarks* thought_marks() const { return nullptr; }
  // The call format that the rendered text asks the model to use.
  virtual ToolCallStyle tool_call_style() const { return ToolCallStyle::kHermes; }
};

// Renders a conversation up to the end of its last message's text, which the answer continues (as
// transformers' continue_final_message). kInvalidArgument if that message has no text or the format
// omits it.
Result<std::string> render_continued(const ChatFormat& format, std::vector<ChatMessage> messages,
                                     const Json& variables, const OrderedJson& tools = nullptr);

// Placeholders of images and videos in ChatML, and the end of a turn.
struct ChatMlStyle {
  std::string image = "<|vision_start|><|image_pad|><|vision_end|>",
              video = "<|vision_start|><|video_pad|><|vision_end|>";
  std::string end_of_turn = "<|im_end|>\n";
};
// ChatML, by default Qwen2-VL's, with a default system prompt if the first message is not from the
// system. If default_system is empty, no default system turn is written.
std::unique_ptr<ChatFormat> make_chatml(std::string default_system = "You are a helpful assistant.",
                                        ChatMlStyle style = {});

}  // namespace valora::text
