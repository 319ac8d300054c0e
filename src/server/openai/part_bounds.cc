#include "server/openai/part_bounds.h"

#include <fmt/format.h>

#include "server/openai/fields.h"

namespace valora::server {
namespace {

constexpr const char* kOthers[] = {
    "resized_height", "resized_width", "total_pixels", "nframes",    "fps",    "min_frames",
    "max_frames",     "video_start",   "video_end",    "sample_fps", "raw_fps"};

}  // namespace

Result<PartBounds::Bounds> PartBounds::bounds_in(const Json& object, const std::string& path) {
  for (const char* key : kOthers)
    if (!member(object, key).is_null())
      return not_implemented(fmt::format("\"{}.{}\" is not supported by this server; it takes "
                                         "min_pixels and max_pixels",
                                         path, key),
                             path);
  Bounds bounds;
  for (const auto& [key, bound] :
       {std::pair{"min_pixels", &bounds.min}, std::pair{"max_pixels", &bounds.max}}) {
    const Json& value = member(object, key);
    if (value.is_null()) continue;
    const bool fits =
        value.is_number_unsigned() ? value.get<uint64_t>() <= INT64_MAX : value.is_number_integer();
    if (!fits) return invalid(fmt::format("\"{}.{}\" must be an integer", path, key), path);
    *bound = value.get<int64_t>();
  }
  return bounds;
}

Status PartBounds::read(const Json& part, const std::string& type, const std::string& path) {
  VALORA_TRY(beside, bounds_in(part, path));
  Bounds bounds = beside;
  if (const Json& object = member(part, type); object.is_object()) {
    VALORA_TRY(within, bounds_in(object, path + "." + type));
    if (beside != Bounds{} && within != Bounds{})
      return invalid(
          fmt::format("\"{}\" has bounds of pixels beside \"{}\" and within it", path, type), path);
    if (within != Bounds{}) bounds = within;
  }
  if (!bounds_) bounds_ = bounds;
  if (*bounds_ == bounds) return {};
  return not_implemented(
      fmt::format("\"{}\" has other min_pixels and max_pixels than the media before it, which is "
                  "not supported by this server",
                  path),
      path);
}

void PartBounds::apply(MediaSettings& settings) const {
  if (!bounds_) return;
  if (bounds_->min) settings.min_pixels = bounds_->min;
  if (bounds_->max) settings.max_pixels = bounds_->max;
}

}  // namespace valora::server
