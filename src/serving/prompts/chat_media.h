// Counts and inspects the media of a conversation.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "api/request.h"

namespace valora::serving {

inline int count_media(const ChatPrompt& chat, MediaRef::Kind kind) {
  int count = 0;
  for (const ChatMessage& message : chat.messages)
    for (const ContentPart& part : message.parts)
      if (const auto* media = std::get_if<MediaRef>(&part); media && media->kind == kind) ++count;
  return count;
}

// The place of a part in the request.
inline std::string part_path(size_t message, size_t part) {
  return fmt::format("messages[{}].content[{}]", message, part);
}

// An error of the medium at `path`, which names it.
inline Error in_part(Error error, const std::string& path) {
  const bool of_client =
      error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kPayloadTooLarge ||
      error.code == ErrorCode::kUnprocessable || error.code == ErrorCode::kNotImplemented;
  if (!of_client) return error;
  return {error.code, fmt::format("\"{}\": {}", path, error.message), path};
}

// The paths of the prompt's media, in their order.
inline std::vector<std::string> media_paths(const Prompt& prompt) {
  std::vector<std::string> paths;
  const auto* chat = std::get_if<ChatPrompt>(&prompt);
  for (size_t m = 0; chat && m < chat->messages.size(); ++m)
    for (size_t i = 0; i < chat->messages[m].parts.size(); ++i)
      if (std::holds_alternative<MediaRef>(chat->messages[m].parts[i]))
        paths.push_back(part_path(m, i));
  return paths;
}

inline bool has_media(const ChatPrompt& chat, MediaRef::Kind kind) {
  return count_media(chat, kind) > 0;
}

}  // namespace valora::serving
