// The error of work that its caller's stop token has ended.
#pragma once

#include "base/result.h"

namespace valora::generator {

inline Error stopped() { return {ErrorCode::kCancelled, "stopped by a signal", {}}; }

}  // namespace valora::generator
