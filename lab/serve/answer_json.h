// Extracts parts of answers in OpenAI's format, streamed or not.
#pragma once

#include <string>

#include "base/json/json.h"

namespace valora::bench {

// The message of an error object, or else the JSON itself, truncated to max_bytes.
std::string error_text(const Json& answer, size_t max_bytes);

// The first choice; null if there is none.
const Json* first_choice(const Json& answer);

// "text" of a completion, or "content" of a chat's delta; empty if absent.
std::string text_of(const Json& choice);

}  // namespace valora::bench
