// Tools for chat formats that take none (ChatFormat::takes_tools).
#pragma once

#include <vector>

#include "text/chat.h"

namespace valora::text {

// The conversation with everything about tools as text in the Hermes form: the tools are described
// at the end of the system message, calls stand in the assistant's text, and results, each between
// <tool_response> and </tool_response>, in the user's turn. tools: a list in OpenAI's form, or
// null.
std::vector<ChatMessage> with_tools_in_text(std::vector<ChatMessage> messages,
                                            const OrderedJson& tools);

}  // namespace valora::text
