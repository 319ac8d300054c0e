// The media of a conversation.
#pragma once

#include "api/request.h"

namespace valora::serving {

inline bool has_media(const ChatPrompt& chat, MediaRef::Kind kind) {
  for (const ChatMessage& message : chat.messages)
    for (const ContentPart& part : message.parts)
      if (const auto* media = std::get_if<MediaRef>(&part); media && media->kind == kind)
        return true;
  return false;
}

}  // namespace valora::serving
