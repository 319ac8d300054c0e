// What a server allows requests to ask for.
#pragma once

#include "api/media_limits.h"

namespace valora::server {

struct RequestLimits {
  RequestLimits() = default;
  RequestLimits(const MediaLimits& media_limits)
      : media(media_limits) {}  // NOLINT: the rest is
                                // the default
  MediaLimits media;
  int max_logprobs = 20;
  bool chat_templates = false;  // requests may bring their own templates
  bool plain_texts = false;     // ChatPrompt::plain_texts
};

}  // namespace valora::server
