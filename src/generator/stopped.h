// The error for work ended by its caller's stop token.
#pragma once

#include "base/result.h"

namespace valora::generator {

inline Error stopped() { return {ErrorCode::kCancelled, "stopped by a signal", {}}; }

}  // namespace valora::generator
