#include "cli/options/media_flags.h"

#include <fmt/format.h>

#include "api/media_fields.h"
#include "base/json/json.h"
#include "base/text/strings.h"

namespace valora::cli {
namespace {

constexpr const char* kLimitOption = "--limit-mm-per-prompt";
constexpr int64_t kMost = 1'000'000;

// Converts image=N,video=M to JSON; JSON stays as it is.
std::string as_json(const std::string& text) {
  if (text.starts_with('{')) return text;
  std::string json = "{\"";
  for (const char c : text)
    if (c == '=')
      json += "\":";
    else if (c == ',')
      json += ",\"";
    else
      json += c;
  return json + "}";
}

// An object's other members tell vLLM how much memory to reserve; they are ignored here.
Result<int> count_of(const std::string& modality, const Json& value) {
  const bool counted = value.is_object() && value.contains("count");
  const Json& count = counted ? value["count"] : value;
  if (!count.is_number_integer() || count.get<int64_t>() < 0 || count.get<int64_t>() > kMost)
    return invalid(fmt::format("{}: \"{}\" must be a number of 0 or more", kLimitOption,
                               shortened(modality, 40)),
                   kLimitOption);
  return static_cast<int>(count.get<int64_t>());
}

}  // namespace

void add_media_limits(Command command, MediaFlags& flags) {
  constexpr MediaLimits kDefault;
  command.add_option(kLimitOption, flags.limits,
                     fmt::format(R"(Highest number of media per prompt: {{"image": {0}, )"
                                 R"("video": {1}}}, or image={0},video={1})",
                                 kDefault.images, kDefault.videos));
}

void add_media_defaults(Command command, MediaFlags& flags) {
  command.add_option("--mm-processor-kwargs", flags.processor,
                     R"(Settings of images and videos that have none: {"max_pixels": 100352, )"
                     R"("fps": 1})");
  command.add_option("--media-io-kwargs", flags.io,
                     R"(Frames of video files, spread evenly over them, at most: {"video": )"
                     R"({"num_frames": 16, "fps": 2}}; -1: all)");
}

Status apply_media(const MediaFlags& flags, EngineOptions& options) {
  VALORA_TRY(limits, read_media_limits(flags.limits, options.media_limits));
  VALORA_TRY(defaults, read_media_defaults(flags.processor, flags.io));
  options.media_limits = limits;
  options.media_defaults = defaults;
  return {};
}

Result<MediaLimits> read_media_limits(const std::string& text, MediaLimits limits) {
  if (text.empty()) return limits;
  VALORA_TRY(json, parse_json(as_json(text), kLimitOption));
  if (!json.is_object())
    return invalid(std::string(kLimitOption) + " takes an object", kLimitOption);
  for (const auto& [modality, value] : json.items()) {
    VALORA_TRY(count, count_of(modality, value));
    if (modality == "image") {
      limits.images = count;
    } else if (modality == "video") {
      limits.videos = count;
    } else if (modality != "audio" || count > 0) {
      return invalid(fmt::format("{} has \"{}\"; the modalities are image and video", kLimitOption,
                                 shortened(modality, 40)),
                     kLimitOption);
    }
  }
  return limits;
}

}  // namespace valora::cli
