// Parses requests of OpenAI's Responses API into equivalent chats.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "server/openai/requests.h"

namespace valora::server {

// The places of media: in the chat, and in this API's input.
using MediaPaths = std::vector<std::pair<std::string, std::string>>;

struct ResponseBody {
  GenerationBody chat;
  // Fields repeated in the answer: instructions, metadata, temperature, tools, …
  OrderedJson repeated;
  MediaPaths media_paths;
};

// An error of a medium of the chat, with this API's name of its place.
Error in_response(Error error, const MediaPaths& paths);

// Errors as in requests.h; `param` names a field of this API.
Result<ResponseBody> parse_response(std::string_view text, const RequestLimits& limits);

}  // namespace valora::server
