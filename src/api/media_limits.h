// The highest number of images and videos per prompt.
#pragma once

#include "api/request.h"
#include "base/result.h"

namespace valora {

struct MediaLimits {
  int images = 16;
  int videos = 4;
};

// kInvalidArgument if the conversation has more.
Status check_media(const ChatPrompt& prompt, const MediaLimits& limits);

}  // namespace valora
