// Parses message content in the parity tests.
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "text/chat/chat.h"

namespace valora::text {

// A string, or a list of {"type": "text", "text"}, {"type": "image"} and {"type": "video"}.
inline std::vector<ChatPart> read_parts(const Json& content) {
  if (content.is_string()) return {{ChatPart::Kind::kText, content.get<std::string>()}};
  std::vector<ChatPart> parts;
  for (const Json& part : content) {
    const std::string type = part.at("type");
    if (type == "text")
      parts.push_back({ChatPart::Kind::kText, part.at("text").get<std::string>()});
    else
      parts.push_back({type == "image" ? ChatPart::Kind::kImage : ChatPart::Kind::kVideo, {}});
  }
  return parts;
}

}  // namespace valora::text
