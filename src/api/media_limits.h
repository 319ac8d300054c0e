// How many media a prompt may carry.
#pragma once

#include "api/request.h"
#include "base/result.h"

namespace valora {

struct MediaLimits {
  int images = 16;
  int videos = 4;
};

// kInvalidArgument for a conversation that carries more.
Status check_media(const ChatPrompt& prompt, const MediaLimits& limits);

}  // namespace valora
