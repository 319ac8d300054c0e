#include "server/openai/messages.h"

#include <fmt/format.h>

#include "server/openai/fields.h"

namespace valora::server {
namespace {

// A setting and its destination: either `integer` or `number` is set.
struct PartSetting {
  const char* key;
  bool of_images;
  std::optional<int64_t>* integer;
  std::optional<double>* number;
};

Status read_setting(const Json& value, const PartSetting& setting, const std::string& path) {
  if (setting.number) {
    if (!value.is_number())
      return invalid(fmt::format("\"{}.{}\" must be a number", path, setting.key), path);
    *setting.number = value.get<double>();
    return {};
  }
  *setting.integer = as_integer(value);
  if (*setting.integer) return {};
  return invalid(fmt::format("\"{}.{}\" must be an integer", path, setting.key), path);
}

// Reads the settings of a part, or of the object inside it.
Result<MediaSettings> settings_in(const Json& object, const std::string& type,
                                  const std::string& path) {
  MediaSettings out;
  PartFrames frames;
  std::optional<double> raw_fps;  // of the frames' file; ignored by all models
  const PartSetting settings[] = {
      {"min_pixels", true, &out.min_pixels, {}},
      {"max_pixels", true, &out.max_pixels, {}},
      {"resized_height", true, &out.resized_height, {}},
      {"resized_width", true, &out.resized_width, {}},
      {"total_pixels", false, &out.total_pixels, {}},
      {"fps", false, {}, &frames.fps},
      {"nframes", false, &frames.nframes, {}},
      {"min_frames", false, &frames.min_frames, {}},
      {"max_frames", false, &frames.max_frames, {}},
      {"video_start", false, {}, &frames.video_start},
      {"video_end", false, {}, &frames.video_end},
      {"sample_fps", false, {}, &out.sample_fps},
      {"raw_fps", false, {}, &raw_fps},
  };
  for (const PartSetting& setting : settings) {
    const Json& value = member(object, setting.key);
    if (value.is_null()) continue;
    if (type == "image_url" && !setting.of_images)
      return invalid(fmt::format("\"{}.{}\" is a setting of videos", path, setting.key), path);
    VALORA_CHECK(read_setting(value, setting, path));
  }
  if (frames != PartFrames{}) out.frames = frames;
  return out;
}

}  // namespace

Result<MediaSettings> part_settings(const Json& part, const std::string& type,
                                    const std::string& path) {
  VALORA_TRY(beside, settings_in(part, type, path));
  const Json& object = member(part, type);
  if (!object.is_object()) return beside;
  VALORA_TRY(within, settings_in(object, type, path + "." + type));
  if (beside != MediaSettings{} && within != MediaSettings{})
    return invalid(
        fmt::format("\"{}\" has media settings both next to \"{}\" and within it", path, type),
        path);
  return within == MediaSettings{} ? beside : within;
}

}  // namespace valora::server
