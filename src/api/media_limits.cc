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

MediaCounts count_media(const ChatPrompt& prompt) {
  MediaCounts counts;
  for (const ChatMessage& message : prompt.messages)
    for (const ContentPart& part : message.parts)
      if (const auto* media = std::get_if<MediaRef>(&part))
        ++(media->kind == MediaRef::Kind::kImage ? counts.images : counts.videos);
  return counts;
}

Status check_media(const ChatPrompt& prompt, const MediaLimits& limits) {
  const MediaCounts counts = count_media(prompt);
  VALORA_CHECK(check_count(counts.images, limits.images, "image"));
  return check_count(counts.videos, limits.videos, "video");
}

}  // namespace valora
