// Settings of media in content parts, as messages for Qwen's qwen_vl_utils have them: next to
// "image_url" or "video_url", or inside it.
#pragma once

#include <string>

#include "api/request.h"
#include "base/json.h"
#include "base/result.h"

namespace valora::server {

// Those of a part of `type`, "image_url" or "video_url". kInvalidArgument names the setting and has
// the part's path: it has another type than a number, or it is not of this kind of media.
Result<MediaSettings> part_settings(const Json& part, const std::string& type,
                                    const std::string& path);

}  // namespace valora::server
