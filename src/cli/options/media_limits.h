// --limit-mm-per-prompt, in vLLM's forms.
#pragma once

#include <string>

#include "api/media_limits.h"
#include "base/result.h"

namespace valora::cli {

// Reads {"image": N, "video": M}, the older image=N,video=M, or the newer {"image": {"count": N}},
// over `limits`. kInvalidArgument for anything else, and for audio above 0.
Result<MediaLimits> read_media_limits(const std::string& text, MediaLimits limits);

}  // namespace valora::cli
