#include "media/processors/tile_settings.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace valora::media {
namespace {

constexpr std::string_view kTileKeys[] = {
    "do_resize",
    "size",
    "resample",
    "do_image_splitting",
    "max_image_size",
    "do_rescale",
    "do_pad",
    "do_normalize",
    "rescale_factor",
    "image_mean",
    "image_std",
    "return_row_col_info",
    "image_processor_type",
    "video_sampling",
};
constexpr std::string_view kTileTypes[] = {
    "Idefics3ImageProcessor", "Idefics3ImageProcessorFast", "Idefics3ImageProcessorPil",
    "SmolVLMImageProcessor",  "SmolVLMImageProcessorFast",  "SmolVLMImageProcessorPil"};
constexpr int kMaxTile = 1 << 13;
constexpr std::array kHalf{0.5, 0.5, 0.5};
constexpr std::string_view kVideoKeys[] = {"num_frames", "fps", "video_processor_type",
                                           "do_sample_frames", "return_metadata"};
constexpr std::string_view kVideoTypes[] = {"SmolVLMVideoProcessor"};

bool is_set(const Json& json, const char* key) {
  return json.contains(key) && !json.at(key).is_null();
}

Status read_tile_size(const Json& json, TileSettings& settings) {
  if (!is_set(json, "size")) return {};
  const Json& size = json.at("size");
  if (size.is_object() && is_set(size, "longest_edge")) {
    VALORA_TRY(edge, positive(size, "longest_edge", 1, 1 << 24));
    settings.longest_edge = edge;
    return {};
  }
  if (!size.is_object() || !is_set(size, "height") || !is_set(size, "width"))
    return refuse_setting("size", "must hold longest_edge, or height and width");
  VALORA_TRY(height, positive(size, "height", 1, kMaxTile));
  VALORA_TRY(width, positive(size, "width", 1, kMaxTile));
  settings.longest_edge = 0;
  settings.fixed = {width, height};
  return {};
}

}  // namespace

Result<TileSettings> read_tile_settings(const Json& json) {
  VALORA_CHECK(check_keys(json, kTileKeys));
  VALORA_CHECK(check_type(json, "image_processor_type", kTileTypes));
  TileSettings settings;
  VALORA_TRY(do_resize, field_or(json, "do_resize", true));
  VALORA_TRY(splits, field_or(json, "do_image_splitting", true));
  VALORA_TRY(values, read_pixel_values(json, {.mean = kHalf, .std = kHalf}));
  VALORA_TRY(filter, read_resample(json, Resample::kLanczos));
  VALORA_CHECK(read_tile_size(json, settings));
  if (is_set(json, "max_image_size")) {
    const Json& tile = json.at("max_image_size");
    if (!tile.is_object() || !is_set(tile, "longest_edge"))
      return refuse_setting("max_image_size", "must hold longest_edge");
    VALORA_TRY(side, positive(tile, "longest_edge", 1, kMaxTile));
    settings.tile = side;
  }
  settings.do_resize = do_resize;
  settings.splits = splits;
  settings.values = values;
  settings.filter = filter;
  return settings;
}

Result<TileSampling> read_tile_sampling(const Json& json) {
  const bool nested = is_set(json, "video_sampling") && json.at("video_sampling").is_object();
  const Json& from = nested ? json.at("video_sampling") : json;
  VALORA_TRY(most, optional_field<int64_t>(from, nested ? "max_frames" : "num_frames"));
  VALORA_TRY(fps, optional_field<double>(from, "fps"));
  if (!most || !fps) return TileSampling{};
  if (*most < 1 || *most > (1 << 16)) return refuse_setting("num_frames", "is out of range");
  if (!(*fps > 0) || *fps > 1e6) return refuse_setting("fps", "must be positive");
  return TileSampling{*most, *fps};
}

Result<TileSettings> read_tiled_videos(Json json) {
  VALORA_CHECK(check_type(json, "video_processor_type", kVideoTypes));
  for (const std::string_view key : kVideoKeys) json.erase(std::string(key));
  // Without its own size, use the one in "video_sampling".
  if (!is_set(json, "size") && is_set(json, "video_sampling") &&
      json.at("video_sampling").is_object() && is_set(json.at("video_sampling"), "video_size"))
    json["size"] = json.at("video_sampling").at("video_size");
  VALORA_TRY(settings, read_tile_settings(json));
  if (!settings.do_resize) return refuse_setting("do_resize", "is false for videos");
  settings.splits = false;
  return settings;
}

Result<std::vector<int64_t>> sample_tiled(const VideoInfo& video, const TileSampling& sampling) {
  if (sampling.most == 0)
    return invalid(
        "the model's folder does not say how videos are sampled (\"video_sampling\"); send a list "
        "of frames");
  if (video.frames < 1) return invalid("the video has no frames");
  if (video.frames > (int64_t{1} << 52)) return invalid("the video has too many frames");
  if (!(video.fps > 0)) return invalid("the video has no frame rate");
  const double seconds = double(video.frames) / video.fps;
  const double by_rate = std::nearbyint(sampling.fps * seconds);
  const auto kept = static_cast<int64_t>(std::max(std::min(by_rate, double(sampling.most)), 1.0));
  int64_t first = 0, last = video.frames - 1;
  if (seconds - 2 > double(sampling.most) * sampling.fps) {
    first = static_cast<int64_t>(video.fps);
    last = std::min(static_cast<int64_t>(double(video.frames) - video.fps), last);
  }
  if (first >= last) first = 0, last = video.frames - 1;
  // numpy.linspace(first, last, kept, dtype=int) without duplicates
  std::vector<int64_t> indices;
  const double step = kept > 1 ? double(last - first) / double(kept - 1) : 0;
  for (int64_t i = 0; i < kept; ++i) {
    const bool end = i > 0 && i == kept - 1;
    const int64_t index =
        end ? last : static_cast<int64_t>(std::floor(double(i) * step + double(first)));
    if (indices.empty() || index > indices.back()) indices.push_back(index);
  }
  return indices;
}

}  // namespace valora::media
