// Tools for chat formats without tool support (ChatFormat::takes_tools).
#pragma once

#include <vector>

#include "text/chat/chat.h"

namespace valora::text {

// Rewrites everything about tools as text in the Hermes format: tools are described at the end of
// the system message, calls become part of the assistant's text, and results go into user turns,
// each between <tool_response> and </tool_response>. tools: a list in OpenAI's format, or null.
std::vector<ChatMessage> with_tools_in_text(std::vector<ChatMessage> messages,
                                            const OrderedJson& tools);

}  // namespace valora::text
