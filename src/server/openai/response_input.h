// Parses requests of OpenAI's Responses API into equivalent chats.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "server/openai/requests.h"

namespace valora::server {

struct ResponseBody {
  GenerationBody chat;
  // Fields repeated in the answer: instructions, metadata, temperature, tools, …
  OrderedJson repeated;
};

// Errors as in requests.h; `param` names a field of this API.
Result<ResponseBody> parse_response(std::string_view text, const RequestLimits& limits);

}  // namespace valora::server
