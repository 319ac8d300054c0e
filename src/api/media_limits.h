// The number of images and videos per prompt, and the limits on them.
#pragma once

#include "api/request.h"
#include "base/result.h"

namespace valora {

struct MediaLimits {
  int images = 64;  // applications that watch cameras send up to 30 thumbnails
  int videos = 4;
};

struct MediaCounts {
  int images = 0;
  int videos = 0;
};

// Counts the media of the whole conversation.
MediaCounts count_media(const ChatPrompt& prompt);

// kInvalidArgument if the conversation exceeds the limits.
Status check_media(const ChatPrompt& prompt, const MediaLimits& limits);

}  // namespace valora
