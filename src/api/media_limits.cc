#include "api/media_limits.h"

#include <string>

namespace valora {
namespace {

Status check_count(int count, int limit, const char* name) {
  if (count <= limit) return {};
  return invalid("At most " + std::to_string(limit) + " " + name +
                     "(s) may be provided in one prompt, not " + std::to_string(count) + ".",
                 "messages");
}

}  // namespace

Status check_media(const ChatPrompt& prompt, const MediaLimits& limits) {
  int images = 0, videos = 0;
  for (const ChatMessage& message : prompt.messages)
    for (const ContentPart& part : message.parts)
      if (const auto* media = std::get_if<MediaRef>(&part))
        ++(media->kind == MediaRef::Kind::kImage ? images : videos);
  VALORA_CHECK(check_count(images, limits.images, "image"));
  return check_count(videos, limits.videos, "video");
}

}  // namespace valora
