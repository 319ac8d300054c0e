// Counts and inspects the media of a conversation.
#pragma once

#include "api/request.h"

namespace valora::serving {

inline int count_media(const ChatPrompt& chat, MediaRef::Kind kind) {
  int count = 0;
  for (const ChatMessage& message : chat.messages)
    for (const ContentPart& part : message.parts)
      if (const auto* media = std::get_if<MediaRef>(&part); media && media->kind == kind) ++count;
  return count;
}

inline bool has_media(const ChatPrompt& chat, MediaRef::Kind kind) {
  return count_media(chat, kind) > 0;
}

}  // namespace valora::serving
