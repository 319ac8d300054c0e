// Built-in formats of families whose folders have no chat template. ChatML is in chat.h.
#pragma once

#include <memory>

#include "text/chat.h"

namespace valora::text {

// Llama 2: [INST] … [/INST] with the system prompt inside the first user turn. Turns must alternate
// user and assistant. Text only.
std::unique_ptr<ChatFormat> make_llama2_chat();
// Llama 3: <|start_header_id|>role<|end_header_id|> … <|eot_id|>. Text only.
std::unique_ptr<ChatFormat> make_llama3_chat();
// LLaVA-1.5: "USER: <image>\ntext ASSISTANT:". A turn's images come before its text.
std::unique_ptr<ChatFormat> make_llava_chat();

}  // namespace valora::text
