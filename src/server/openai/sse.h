// Server-sent events in OpenAI's framing.
#pragma once

#include <string>
#include <string_view>

#include "server/http/http.h"

namespace valora::server {

inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

// The head of the answer.
inline HttpResponse event_stream() {
  return {.content_type = "text/event-stream; charset=utf-8",
          .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
}

inline std::string sse_event(std::string_view json) {
  std::string out;
  out.reserve(json.size() + 8);
  out.append("data: ").append(json).append("\n\n");
  return out;
}

}  // namespace valora::server
