// Parses chat messages with text, image and video parts.
#pragma once

#include "api/media_limits.h"
#include "api/request.h"
#include "base/json.h"
#include "base/result.h"

namespace valora::server {

// Errors name the path of the wrong value ("messages[1].content[0].image_url.url"). Moves the
// strings out of `body`.
Result<ChatPrompt> parse_messages(Json& body, const MediaLimits& limits);

}  // namespace valora::server
