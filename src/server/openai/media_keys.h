// Media that a message has outside its content, as Ollama and trainers send them.
#pragma once

#include <fmt/format.h>

#include <string>

#include "server/openai/fields.h"

namespace valora::server {

// An error if there are any, because they would be lost.
inline Status refuse_media_keys(const Json& message, const std::string& path) {
  for (const char* key : {"images", "image", "videos", "video"})
    if (!unused(message, key))
      return not_implemented(
          fmt::format("\"{0}.{1}\" is not supported by this server: send media as image_url or "
                      "video_url parts of \"{0}.content\"",
                      path, key),
          path + "." + key);
  return {};
}

}  // namespace valora::server
