// Chat messages with text, image and video parts.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "engine/engine.h"

namespace valora::server {

struct MediaLimits {
  int images = 999;
  int videos = 999;
};

// Errors name the path of what is wrong ("messages[1].content[0].image_url.url"). Takes the strings
// out of `body`.
Result<ChatPrompt> parse_messages(Json& body, const MediaLimits& limits);

}  // namespace valora::server
