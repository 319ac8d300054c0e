#include "media/qwen2_vl_settings.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace valora::media {
namespace {

// Read by the functions below.
constexpr std::string_view kRead[] = {
    "do_resize",  "do_rescale", "do_normalize",        "size",       "min_pixels", "max_pixels",
    "resample",   "image_mean", "image_std",           "patch_size", "merge_size", "rescale_factor",
    "num_frames", "fps",        "temporal_patch_size", "min_frames", "max_frames", "image_processor_type",
    "video_processor_type",
};
// Without effect on the pixels of a decoded RGB picture, or on what is kept of a video file: frames of
// files are always sampled, whatever do_sample_frames says to callers who bring decoded frames.
constexpr std::string_view kWithoutEffect[] = {
    "do_convert_rgb",    "processor_class",  "feature_extractor_type", "auto_map",         "return_tensors",
    "data_format",       "device",           "input_data_format",      "disable_grouping", "default_to_square",
    "crop_size",         "pad_size",         "do_sample_frames",       "video_metadata",   "return_metadata",
    "_valid_processor_keys", "transformers_version",
};

constexpr int64_t kBicubic = 3;  // of PIL's resampling filters
constexpr int64_t kMaxArea = int64_t{1} << 30;

Error refuse(std::string_view key, std::string_view why) {
  return unprocessable(fmt::format("the image processor's setting \"{}\" {}", key, why), std::string(key));
}

bool is_one_of(std::string_view key, std::span<const std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

Status check_keys(const Json& json) {
  if (!json.is_object()) return invalid("the image processor's settings are not a JSON object");
  for (const auto& [key, value] : json.items()) {
    const bool unset = value.is_null() || (value.is_boolean() && !value.get<bool>());
    if (!unset && !is_one_of(key, kRead) && !is_one_of(key, kWithoutEffect))
      return refuse(key, "is not supported and may change pixels");
  }
  return {};
}

Status check_type(const Json& json, std::string_view key, std::span<const std::string_view> types) {
  VALORA_TRY(type, optional_field<std::string>(json, key));
  if (type && !is_one_of(*type, types)) return refuse(key, fmt::format("names another processor: {}", *type));
  return {};
}

Result<int> positive(const Json& json, std::string_view key, int fallback, int most) {
  VALORA_TRY(value, field_or<int32_t>(json, key, fallback));
  if (value < 1 || value > most) return refuse(key, fmt::format("must lie between 1 and {}", most));
  return value;
}

Result<PixelBounds> pixel_bounds(const Json& json, PixelBounds bounds) {
  const auto size = json.find("size");
  if (size != json.end() && !size->is_null()) {
    if (!size->is_object() || !size->contains("shortest_edge") || !size->contains("longest_edge"))
      return refuse("size", "must hold shortest_edge and longest_edge");
    VALORA_TRY(min, field_or<int64_t>(*size, "shortest_edge", bounds.min));
    VALORA_TRY(max, field_or<int64_t>(*size, "longest_edge", bounds.max));
    bounds = {min, max};
  }
  VALORA_TRY(min, field_or<int64_t>(json, "min_pixels", bounds.min));
  VALORA_TRY(max, field_or<int64_t>(json, "max_pixels", bounds.max));
  // The reference takes a minimum above the maximum as it is, and so do we.
  if (min < 0 || max < 1 || min > kMaxArea || max > kMaxArea)
    return refuse("max_pixels", fmt::format("and min_pixels are out of range: {} and {}", max, min));
  return PixelBounds{min, max};
}

// One number for all channels, or three.
Result<std::array<double, 3>> channels(const Json& json, std::string_view key, std::array<double, 3> fallback) {
  const auto it = json.find(std::string(key));
  if (it == json.end() || it->is_null()) return fallback;
  std::array<double, 3> values;
  for (size_t c = 0; c < values.size(); ++c) {
    if (it->is_array() && it->size() != values.size()) return refuse(key, "must have three numbers");
    const Json& value = it->is_array() ? (*it)[c] : *it;
    if (!value.is_number()) return refuse(key, "must be a number or three");
    values[c] = value.get<double>();
  }
  return values;
}

Result<PatchSettings> read_settings(const Json& json, PixelBounds default_bounds) {
  VALORA_CHECK(check_keys(json));
  PatchSettings settings;
  VALORA_TRY(do_resize, field_or(json, "do_resize", true));
  VALORA_TRY(do_rescale, field_or(json, "do_rescale", true));
  VALORA_TRY(do_normalize, field_or(json, "do_normalize", true));
  VALORA_TRY(pixels, pixel_bounds(json, default_bounds));
  VALORA_TRY(rescale_factor, field_or(json, "rescale_factor", settings.rescale_factor));
  VALORA_TRY(mean, channels(json, "image_mean", settings.mean));
  VALORA_TRY(std, channels(json, "image_std", settings.std));
  VALORA_TRY(patch_size, positive(json, "patch_size", settings.patch_size, 256));
  VALORA_TRY(temporal, positive(json, "temporal_patch_size", settings.temporal_patch_size, 16));
  VALORA_TRY(merge_size, positive(json, "merge_size", settings.merge_size, 16));
  VALORA_TRY(resample, field_or(json, "resample", kBicubic));
  if (resample != kBicubic) return refuse("resample", "is not 3: only bicubic is supported");
  if (std::any_of(std.begin(), std.end(), [](double s) { return s == 0; })) return refuse("image_std", "has a zero");
  return PatchSettings{do_resize, do_rescale, do_normalize, pixels,   rescale_factor,
                       mean,      std,        patch_size,   temporal, merge_size};
}

}  // namespace

Result<PatchSettings> read_image_settings(const Json& json) {
  VALORA_TRY(settings, read_settings(json, PixelBounds{}));
  constexpr std::string_view kTypes[] = {"Qwen2VLImageProcessor", "Qwen2VLImageProcessorFast",
                                         "Qwen2_5_VLImageProcessor", "Qwen2VLImageProcessorPil"};
  VALORA_CHECK(check_type(json, "image_processor_type", kTypes));
  return settings;
}

Result<PatchSettings> read_video_settings(const Json& json) {
  VALORA_TRY(settings, read_settings(json, PixelBounds{128 * 28 * 28, 768 * 28 * 28}));
  constexpr std::string_view kTypes[] = {"Qwen2VLVideoProcessor", "Qwen2_5_VLVideoProcessor"};
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
  if (num_frames && fps) return refuse("num_frames", "and \"fps\" exclude each other");
  if (num_frames && *num_frames < 1) return refuse("num_frames", "must be positive");
  if (fps && !(*fps > 0)) return refuse("fps", "must be positive");
  if (min_frames < 1 || max_frames < min_frames) return refuse("max_frames", "and min_frames give no usable range");
  return FrameSampling{num_frames, fps.value_or(sampling.fps), min_frames, max_frames, temporal};
}

}  // namespace valora::media
