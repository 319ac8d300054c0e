#include "text/chat/tool_prompt.h"

#include <string>
#include <utility>

namespace valora::text {
namespace {

ChatPart text_part(std::string text) { return {ChatPart::Kind::kText, std::move(text)}; }

std::string description(const OrderedJson& tools) {
  std::string out = "You can call functions. Each line of this list describes one:\n<tools>\n";
  for (const OrderedJson& tool : tools) out += tool.dump() + "\n";
  return out +
         "</tools>\nTo call one, answer with its name and its arguments in this form, once per "
         "call:\n<tool_call>\n{\"name\": \"NAME\", \"arguments\": {\"ARGUMENT\": VALUE}}\n"
         "</tool_call>";
}

void describe(std::vector<ChatMessage>& messages, const OrderedJson& tools) {
  if (messages.empty() || messages.front().role != "system")
    messages.insert(messages.begin(), {"system", {}});
  std::vector<ChatPart>& parts = messages.front().parts;
  parts.push_back(text_part((parts.empty() ? "" : "\n\n") + description(tools)));
}

void write_calls(ChatMessage& message) {
  for (const ToolCall& call : std::exchange(message.tool_calls, {}))
    message.parts.push_back(text_part(
        (message.parts.empty() ? "<tool_call>\n{\"name\": " : "\n<tool_call>\n{\"name\": ") +
        OrderedJson(call.name).dump() + ", \"arguments\": " + call.arguments.dump() +
        "}\n</tool_call>"));
}

ChatMessage result_turn(ChatMessage message) {
  ChatMessage turn{"user", {text_part("<tool_response>\n")}};
  std::move(message.parts.begin(), message.parts.end(), std::back_inserter(turn.parts));
  turn.parts.push_back(text_part("\n</tool_response>"));
  return turn;
}

}  // namespace

std::vector<ChatMessage> with_tools_in_text(std::vector<ChatMessage> messages,
                                            const OrderedJson& tools) {
  std::vector<ChatMessage> out;
  bool results = false;  // the last turn of `out` contains results
  for (ChatMessage& message : messages) {
    const bool result = message.role == "tool";
    write_calls(message);
    if (result) message = result_turn(std::move(message));
    // Many formats require alternating turns.
    if (results && message.role == "user") {
      out.back().parts.push_back(text_part("\n"));
      std::move(message.parts.begin(), message.parts.end(), std::back_inserter(out.back().parts));
    } else {
      out.push_back(std::move(message));
    }
    results = result;
  }
  if (tools.is_array() && !tools.empty()) describe(out, tools);
  return out;
}

}  // namespace valora::text
