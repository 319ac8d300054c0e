// Bounds of pixels within content parts, as messages for Qwen's qwen_vl_utils have them, beside
// "image_url" or "video_url" or within it. All media of a conversation have the same.
#pragma once

#include <optional>
#include <string>

#include "api/request.h"
#include "base/json.h"
#include "base/result.h"

namespace valora::server {

class PartBounds {
 public:
  // Reads those of a part of `type`. kNotImplemented: it has others than the parts before it, or
  // one of qwen_vl_utils' other settings.
  Status read(const Json& part, const std::string& type, const std::string& path);

  // They go before those of the request.
  void apply(MediaSettings& settings) const;

 private:
  struct Bounds {
    std::optional<int64_t> min, max;
    bool operator==(const Bounds&) const = default;
  };
  static Result<Bounds> bounds_in(const Json& object, const std::string& path);

  std::optional<Bounds> bounds_;  // empty before the first part
};

}  // namespace valora::server
