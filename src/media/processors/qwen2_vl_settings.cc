#include "media/processors/qwen2_vl_settings.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace valora::media {
namespace {

constexpr std::string_view kQwen2VlKeys[] = {
    "do_resize",
    "do_rescale",
    "do_normalize",
    "size",
    "min_pixels",
    "max_pixels",
    "resample",
    "image_mean",
    "image_std",
    "patch_size",
    "merge_size",
    "rescale_factor",
    "num_frames",
    "fps",
    "temporal_patch_size",
    "min_frames",
    "max_frames",
    "image_processor_type",
    "video_processor_type",
    "cap_pixels_per_frame",
    "max_video_tokens",
    // These models' classes ignore the following keys, although their base classes read them.
    "do_center_crop",
    "do_pad",
    "use_token_compression",
    // No effect on video files, whose frames are always sampled; do_sample_frames is for callers
    // with decoded frames.
    "crop_size",
    "pad_size",
    "do_sample_frames",
    "video_metadata",
    "return_metadata",
};

constexpr int64_t kMaxArea = int64_t{1} << 30;

Result<PixelBounds> pixel_bounds(const Json& json, PixelBounds defaults) {
  auto least = static_cast<int64_t>(defaults.min), most = static_cast<int64_t>(defaults.max);
  const auto size = json.find("size");
  if (size != json.end() && !size->is_null()) {
    if (!size->is_object()) return refuse_setting("size", "must be an object");
    const auto edge = [&](const char* key, const char* other, int64_t fallback) {
      return field_or<int64_t>(*size, size->contains(key) ? key : other, fallback);
    };
    const auto given = [&](const char* key, const char* other) {
      return size->contains(key) || size->contains(other) || json.contains(other);
    };
    if (!given("shortest_edge", "min_pixels") || !given("longest_edge", "max_pixels"))
      return refuse_setting("size", "must hold shortest_edge and longest_edge");
    VALORA_TRY(min, edge("shortest_edge", "min_pixels", least));
    VALORA_TRY(max, edge("longest_edge", "max_pixels", most));
    least = min;
    most = max;
  }
  VALORA_TRY(min, field_or<int64_t>(json, "min_pixels", least));
  VALORA_TRY(max, field_or<int64_t>(json, "max_pixels", most));
  // As in the reference, the minimum may exceed the maximum.
  if (min < 0 || max < 1 || min > kMaxArea || max > kMaxArea)
    return refuse_setting("max_pixels",
                          fmt::format("and min_pixels are out of range: {} and {}", max, min));
  return PixelBounds{double(min), double(max)};
}

// settings: defaults for absent keys.
Result<PatchSettings> read_settings(const Json& json, PatchSettings settings) {
  VALORA_CHECK(check_keys(json, kQwen2VlKeys));
  VALORA_TRY(do_resize, field_or(json, "do_resize", true));
  VALORA_TRY(values, read_pixel_values(json, settings.values));
  VALORA_TRY(pixels, pixel_bounds(json, settings.pixels));
  VALORA_TRY(patch_size, positive(json, "patch_size", settings.patch_size, 256));
  VALORA_TRY(temporal, positive(json, "temporal_patch_size", settings.temporal_patch_size, 16));
  VALORA_TRY(merge_size, positive(json, "merge_size", settings.merge_size, 16));
  VALORA_CHECK(check_bicubic(json));
  settings.do_resize = do_resize;
  settings.values = values;
  settings.pixels = pixels;
  settings.patch_size = patch_size;
  settings.temporal_patch_size = temporal;
  settings.merge_size = merge_size;
  return settings;
}

// 0 unless cap_pixels_per_frame is set.
Result<int64_t> video_tokens(const Json& json, int fallback) {
  VALORA_TRY(capped, field_or(json, "cap_pixels_per_frame", false));
  if (!capped) return 0;
  VALORA_TRY(tokens, positive(json, "max_video_tokens", fallback, 1 << 30));
  return int64_t{tokens};
}

}  // namespace

Result<PatchSettings> read_image_settings(const Json& json) {
  VALORA_TRY(settings, read_settings(json, {}));
  constexpr std::string_view kTypes[] = {"Qwen2VLImageProcessor", "Qwen2VLImageProcessorFast",
                                         "Qwen2_5_VLImageProcessor", "Qwen2VLImageProcessorPil"};
  VALORA_CHECK(check_type(json, "image_processor_type", kTypes));
  return settings;
}

Result<PatchSettings> read_video_settings(const Json& json) {
  VALORA_TRY(settings, read_settings(json, {.pixels = {128 * 28 * 28, 768 * 28 * 28}}));
  VALORA_TRY(tokens, video_tokens(json, 128'000));
  settings.video_tokens = tokens;
  constexpr std::string_view kTypes[] = {"Qwen2VLVideoProcessor", "Qwen2_5_VLVideoProcessor"};
  VALORA_CHECK(check_type(json, "video_processor_type", kTypes));
  return settings;
}

Result<PatchSettings> read_whole_video_settings(const Json& json) {
  constexpr std::array kHalf{0.5, 0.5, 0.5};
  PatchSettings defaults{.values = {.mean = kHalf, .std = kHalf},
                         .pixels = {128 * 32 * 32, 768 * 32 * 32},
                         .whole_video = true,
                         .patch_size = 16};
  VALORA_TRY(settings, read_settings(json, defaults));
  VALORA_TRY(tokens, video_tokens(json, 768));
  settings.video_tokens = tokens;
  constexpr std::string_view kTypes[] = {"Qwen3VLVideoProcessor"};
  VALORA_CHECK(check_type(json, "video_processor_type", kTypes));
  return settings;
}

Result<FrameSampling> read_frame_sampling(const Json& json) {
  FrameSampling sampling;
  VALORA_TRY(num_frames, optional_field<int64_t>(json, "num_frames"));
  VALORA_TRY(fps, optional_field<double>(json, "fps"));
  VALORA_TRY(min_frames, field_or(json, "min_frames", sampling.min_frames));
  VALORA_TRY(max_frames, field_or(json, "max_frames", sampling.max_frames));
  VALORA_TRY(temporal, positive(json, "temporal_patch_size", sampling.temporal_patch, 16));
  if (num_frames && fps) return refuse_setting("num_frames", "and \"fps\" exclude each other");
  if (num_frames && *num_frames < 1) return refuse_setting("num_frames", "must be positive");
  if (fps && !(*fps > 0)) return refuse_setting("fps", "must be positive");
  if (min_frames < 1 || max_frames < min_frames)
    return refuse_setting("max_frames", "and min_frames give no usable range");
  return FrameSampling{num_frames, fps.value_or(sampling.fps), min_frames, max_frames, temporal};
}

}  // namespace valora::media
