// Reads media settings in content parts, as written for Qwen's qwen_vl_utils: next to "image_url"
// or "video_url", or inside it.
#pragma once

#include <string>

#include "api/request.h"
#include "base/json/json.h"
#include "base/result.h"

namespace valora::server {

// Settings of a part of `type`, "image_url" or "video_url". kInvalidArgument, naming the setting
// and the part's path, if a value is not a number or the setting does not apply to this kind of
// media.
Result<MediaSettings> part_settings(const Json& part, const std::string& type,
                                    const std::string& path);

}  // namespace valora::server
