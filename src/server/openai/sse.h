// Server-sent events in OpenAI's framing.
#pragma once

#include <string>
#include <string_view>

namespace valora::server {

inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

inline std::string sse_event(std::string_view json) {
  std::string out;
  out.reserve(json.size() + 8);
  out.append("data: ").append(json).append("\n\n");
  return out;
}

}  // namespace valora::server
