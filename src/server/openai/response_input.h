// Parses requests of OpenAI's Responses API as the chats that they stand for.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "server/openai/requests.h"

namespace valora::server {

struct ResponseBody {
  GenerationBody chat;
  // The fields that the answer repeats: instructions, metadata, temperature, tools, …
  OrderedJson repeated;
};

// Errors as in requests.h; `param` is a field of this API.
Result<ResponseBody> parse_response(std::string_view text, const RequestLimits& limits);

}  // namespace valora::server
