// Parts of answers in OpenAI's form, streamed or not.
#pragma once

#include <string>

#include "base/json.h"

namespace valora::bench {

// What an error object says, or the JSON itself, in at most max_bytes.
std::string error_text(const Json& answer, size_t max_bytes);

// The first choice; null if there is none.
const Json* first_choice(const Json& answer);

// "text" of a completion, "content" of a chat's delta; empty if there is neither.
std::string text_of(const Json& choice);

}  // namespace valora::bench
