// Stops work that no longer has a recipient: the request was cancelled or the engine is stopping.
#pragma once

#include <stop_token>

#include "base/result.h"

namespace valora::media {

inline Error stopped_error() { return {ErrorCode::kCancelled, "the request was cancelled", {}}; }

inline Status check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) return stopped_error();
  return {};
}

}  // namespace valora::media
