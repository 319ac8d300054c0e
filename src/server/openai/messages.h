// Parses chat messages with text, image and video parts, tool calls and their results.
#pragma once

#include <string>

#include "api/request.h"
#include "base/json/json.h"
#include "base/result.h"
#include "server/openai/request_limits.h"

namespace valora::server {

// A part of a message's content. Moves the strings out of `part`.
Result<ContentPart> parse_content_part(Json& part, const std::string& path);

// Errors name the path of the wrong value ("messages[1].content[0].image_url.url"). Moves the
// strings out of `body`.
Result<ChatPrompt> parse_messages(Json& body, const RequestLimits& limits);

}  // namespace valora::server
