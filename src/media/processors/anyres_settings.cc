#include "media/processors/anyres_settings.h"

#include <algorithm>

#include <fmt/format.h>

namespace valora::media {
namespace {

constexpr std::string_view kAnyresKeys[] = {
    "do_resize",
    "size",
    "resample",
    "do_center_crop",
    "crop_size",
    "do_rescale",
    "do_normalize",
    "image_mean",
    "image_std",
    "rescale_factor",
    "image_grid_pinpoints",
    "do_pad",  // pads a request's batch to equally many tiles
    "image_processor_type",
    "num_frames",
    "fps",
    "do_sample_frames",
};
constexpr std::string_view kAnyresTypes[] = {
    "LlavaNextImageProcessor",          "LlavaNextImageProcessorFast",
    "LlavaNextImageProcessorPil",       "LlavaOnevisionImageProcessor",
    "LlavaOnevisionImageProcessorFast", "LlavaOnevisionImageProcessorPil"};
constexpr std::string_view kAnyresVideoKeys[] = {"video_processor_type", "return_metadata",
                                                 "video_metadata"};
constexpr std::string_view kAnyresVideoTypes[] = {"LlavaOnevisionVideoProcessor"};
constexpr int64_t kMaxAnyresFrames = 1 << 16;
constexpr int kMaxAnyresTile = 1 << 13;

Error other_side(std::string_view key, int tile) {
  return refuse_setting(key, fmt::format("does not give squares of {} pixels, which the vision "
                                         "tower takes",
                                         tile));
}

// Checks for a square of the tower's size, in any form the reference reads; an absent key means
// `fallback` pixels per side.
Status check_square(const Json& json, std::string_view key, int fallback, int tile) {
  const auto it = json.find(std::string(key));
  int side = fallback;
  if (it == json.end() || it->is_null()) return side == tile ? Status() : other_side(key, tile);
  if (it->is_number_integer()) {
    VALORA_TRY(read, positive(json, key, 1, kMaxAnyresTile));
    side = read;
  } else if (it->is_object() && it->contains("shortest_edge") && key == "size") {
    VALORA_TRY(read, positive(*it, "shortest_edge", 1, kMaxAnyresTile));
    side = read;
  } else if (it->is_object() && it->contains("height") && it->contains("width")) {
    VALORA_TRY(height, positive(*it, "height", 1, kMaxAnyresTile));
    VALORA_TRY(width, positive(*it, "width", 1, kMaxAnyresTile));
    if (height != width) return other_side(key, tile);
    side = height;
  } else {
    return refuse_setting(key, "must hold height and width");
  }
  return side == tile ? Status() : other_side(key, tile);
}

// The processor's resolutions must equal those by which the model reassembles tiles.
Status check_pinpoints(const Json& json, const AnyresTarget& target) {
  constexpr std::string_view kKey = "image_grid_pinpoints";
  std::vector<PixelSize> sizes = target.default_pinpoints;
  if (const auto it = json.find(std::string(kKey)); it != json.end() && !it->is_null()) {
    auto read = parse_pinpoints(*it);
    if (!read.ok()) return refuse_setting(kKey, read.error().message);
    sizes = std::move(read).value();
  }
  const auto same = [](PixelSize a, PixelSize b) {
    return a.width == b.width && a.height == b.height;
  };
  if (!std::ranges::equal(sizes, target.pinpoints, same))
    return refuse_setting(kKey, "is not that of config.json");
  return {};
}

Result<AnyresSettings> read_values(const Json& json, const AnyresTarget& target) {
  AnyresSettings settings;
  const bool crops = target.most_tiles == 0;  // LLaVA-NeXT
  VALORA_CHECK(check_square(json, "size", crops ? 224 : 384, target.image_size));
  const bool has_crop = json.contains("crop_size") && !json.at("crop_size").is_null();
  if (has_crop || crops) VALORA_CHECK(check_square(json, "crop_size", 224, target.image_size));
  VALORA_TRY(do_center_crop, field_or(json, "do_center_crop", crops));
  if (do_center_crop && !crops && !has_crop)
    return refuse_setting("do_center_crop", "is true without \"crop_size\"");
  VALORA_TRY(filter, read_resample(json, settings.filter));
  VALORA_TRY(values, read_pixel_values(json));
  settings.filter = filter;
  settings.values = values;
  return settings;
}

}  // namespace

Result<AnyresSettings> read_anyres_settings(const Json& json, const AnyresTarget& target) {
  VALORA_CHECK(check_keys(json, kAnyresKeys));
  VALORA_CHECK(check_type(json, "image_processor_type", kAnyresTypes));
  VALORA_CHECK(check_pinpoints(json, target));
  VALORA_TRY(do_resize, field_or(json, "do_resize", true));
  if (!do_resize && target.most_tiles > 0)
    return refuse_setting("do_resize", "is false, and several pictures are resized as squares");
  VALORA_TRY(do_pad, field_or(json, "do_pad", true));
  (void)do_pad;
  return read_values(json, target);
}

Result<AnyresSettings> read_anyres_videos(Json json, const AnyresTarget& target) {
  VALORA_CHECK(check_type(json, "video_processor_type", kAnyresVideoTypes));
  for (const std::string_view key : kAnyresVideoKeys) json.erase(std::string(key));
  VALORA_CHECK(check_keys(json, kAnyresKeys));
  VALORA_TRY(do_resize, field_or(json, "do_resize", true));
  if (!do_resize) return refuse_setting("do_resize", "is false for videos");
  return read_values(json, target);
}

Result<AnyresSampling> read_anyres_sampling(const Json& json) {
  AnyresSampling sampling;
  VALORA_TRY(samples, field_or(json, "do_sample_frames", false));
  VALORA_TRY(num_frames, optional_field<int64_t>(json, "num_frames"));
  VALORA_TRY(fps, optional_field<double>(json, "fps"));
  sampling.all = !samples || (!num_frames && !fps);
  if (sampling.all) return sampling;
  if (num_frames && (*num_frames < 1 || *num_frames > kMaxAnyresFrames))
    return refuse_setting("num_frames", "is out of range");
  if (fps && (!(*fps > 0) || *fps > 1e6)) return refuse_setting("fps", "must be positive");
  sampling.num_frames = num_frames;
  sampling.fps = fps;
  return sampling;
}

Status check_anyres_tokens(const Json& both, const AnyresTarget& target) {
  if (!both.is_object()) return {};
  const int64_t side = target.image_size / target.patch_size, patches = side * side;
  VALORA_TRY(patch, optional_field<int64_t>(both, "patch_size"));
  if (patch && *patch != target.patch_size)
    return refuse_setting("patch_size", "is not that of the vision tower");
  VALORA_TRY(tokens, optional_field<int64_t>(both, "num_image_tokens"));
  if (tokens && *tokens != patches)
    return refuse_setting("num_image_tokens",
                          fmt::format("is {}, but the vision tower makes {}", *tokens, patches));
  VALORA_TRY(strategy, optional_field<std::string>(both, "vision_feature_select_strategy"));
  if (strategy && *strategy != "default" && *strategy != "full")
    return refuse_setting("vision_feature_select_strategy", "is neither default nor full");
  const int64_t left_out = strategy == "default";
  if (left_out && target.most_tiles > 0)
    return refuse_setting("vision_feature_select_strategy",
                          "is default, but the vision tower has no class token to leave out");
  // Before 4.47, processors counted a class token without saying so.
  VALORA_TRY(more, optional_field<int64_t>(both, "num_additional_image_tokens"));
  if (more && *more != left_out)
    return refuse_setting(
        "num_additional_image_tokens",
        fmt::format("is {}, which does not match the tokens that the model makes of a picture",
                    *more));
  VALORA_TRY(aspect, optional_field<std::string>(both, "vision_aspect_ratio"));
  if (aspect && target.most_tiles > 0 && *aspect != fmt::format("anyres_max_{}", target.most_tiles))
    return refuse_setting("vision_aspect_ratio", "is not that of config.json");
  return {};
}

Result<std::vector<int64_t>> sample_anyres(const VideoInfo& video, const AnyresSampling& sampling) {
  if (video.frames < 1) return invalid("the video has no frames");
  int64_t kept = sampling.num_frames.value_or(video.frames);
  if (!sampling.all && !sampling.num_frames) {
    if (!(video.fps > 0)) return invalid("the video has no frame rate");
    const double by_rate = double(video.frames) / video.fps * *sampling.fps;
    kept = by_rate > double(kMaxAnyresFrames) ? kMaxAnyresFrames + 1
                                              : std::max<int64_t>(1, static_cast<int64_t>(by_rate));
  }
  if (kept > kMaxAnyresFrames)
    return invalid(
        fmt::format("the model keeps more than {} frames of this video", kMaxAnyresFrames));
  if (kept > video.frames)
    return invalid(fmt::format("the model keeps {} frames of a video, and this one has {}", kept,
                               video.frames));
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < kept; ++i)
    indices.push_back(static_cast<int64_t>(static_cast<__int128>(i) * video.frames / kept));
  return indices;
}

}  // namespace valora::media
