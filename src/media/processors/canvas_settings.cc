#include "media/processors/canvas_settings.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace valora::media {
namespace {

constexpr std::string_view kCanvasKeys[] = {
    "do_resize",
    "size",
    "resample",
    "do_rescale",
    "do_normalize",
    "image_mean",
    "image_std",
    "rescale_factor",
    "min_patches",
    "max_patches",
    "crop_to_patches",
    "image_processor_type",
    "initial_shift",
    "num_frames",
    "fps",
    "do_sample_frames",
};
constexpr std::string_view kCanvasTypes[] = {"GotOcr2ImageProcessor", "GotOcr2ImageProcessorFast",
                                             "GotOcr2ImageProcessorPil"};
constexpr std::string_view kCanvasVideoKeys[] = {"video_processor_type", "return_metadata",
                                                 "video_metadata"};
constexpr std::string_view kCanvasVideoTypes[] = {"InternVLVideoProcessor"};
constexpr int64_t kMaxCanvasFrames = 1 << 16;

Result<int> read_canvas_tile(const Json& json, int fallback) {
  if (!json.contains("size") || json.at("size").is_null()) return fallback;
  const Json& size = json.at("size");
  if (!size.is_object() || !size.contains("height") || !size.contains("width"))
    return refuse_setting("size", "must hold height and width");
  VALORA_TRY(height, positive(size, "height", fallback, kMaxCanvasTile));
  VALORA_TRY(width, positive(size, "width", fallback, kMaxCanvasTile));
  if (height != width) return refuse_setting("size", "is not square");
  return height;
}

Error too_many_frames() {
  return invalid(
      fmt::format("the model keeps more than {} frames of this video", kMaxCanvasFrames));
}

}  // namespace

Result<CanvasSettings> read_canvas_settings(const Json& json) {
  VALORA_CHECK(check_keys(json, kCanvasKeys));
  VALORA_CHECK(check_type(json, "image_processor_type", kCanvasTypes));
  CanvasSettings settings;
  VALORA_TRY(tile, read_canvas_tile(json, settings.tile));
  VALORA_TRY(values, read_pixel_values(json));
  VALORA_TRY(least, field_or<int32_t>(json, "min_patches", settings.least));
  VALORA_TRY(most, field_or<int32_t>(json, "max_patches", settings.most));
  if (most > kMaxCanvasTiles)
    return refuse_setting("max_patches", fmt::format("is above {}", kMaxCanvasTiles));
  VALORA_TRY(filter, read_resample(json, Resample::kBicubic));
  if (filter != Resample::kBicubic)
    return refuse_setting("resample", "is not 3: only bicubic is supported");
  VALORA_TRY(do_resize, field_or(json, "do_resize", true));
  if (!do_resize && most <= 1)
    return refuse_setting("do_resize", "is false, and pictures are not cut into tiles");
  settings.tile = tile;
  settings.values = values;
  settings.least = least;
  settings.most = most;
  return settings;
}

Result<CanvasSettings> read_canvas_videos(Json json) {
  VALORA_CHECK(check_type(json, "video_processor_type", kCanvasVideoTypes));
  for (const std::string_view key : kCanvasVideoKeys) json.erase(std::string(key));
  VALORA_TRY(settings, read_canvas_settings(json));
  VALORA_TRY(do_resize, field_or(json, "do_resize", true));
  if (!do_resize) return refuse_setting("do_resize", "is false for videos");
  settings.least = settings.most = 1;
  return settings;
}

Result<CanvasSampling> read_canvas_sampling(const Json& json) {
  CanvasSampling sampling;
  VALORA_TRY(samples, field_or(json, "do_sample_frames", false));
  VALORA_TRY(num_frames, optional_field<int64_t>(json, "num_frames"));
  VALORA_TRY(fps, optional_field<double>(json, "fps"));
  sampling.all = !samples;
  if (!samples) return sampling;
  if (!num_frames && !fps)
    return refuse_setting("do_sample_frames", "is true without \"num_frames\" or \"fps\"");
  if (num_frames && (*num_frames < 1 || *num_frames > kMaxCanvasFrames))
    return refuse_setting("num_frames", "is out of range");
  if (fps && (!(*fps > 0) || *fps > 1e6)) return refuse_setting("fps", "must be positive");
  sampling.num_frames = num_frames;
  sampling.fps = fps;
  if (json.contains("initial_shift") && json.at("initial_shift") != true &&
      !json.at("initial_shift").is_null()) {
    const Json& shift = json.at("initial_shift");
    if (shift != false && !shift.is_number())
      return refuse_setting("initial_shift", "is neither a boolean nor a number");
    sampling.first = shift == false ? 0.0 : shift.get<double>();
    if (!(*sampling.first >= 0) || *sampling.first > 1e9)
      return refuse_setting("initial_shift", "is out of range");
  }
  return sampling;
}

Result<std::vector<int64_t>> sample_canvas(const VideoInfo& video, const CanvasSampling& sampling) {
  if (video.frames < 1) return invalid("the video has no frames");
  int64_t kept = sampling.num_frames.value_or(video.frames);
  if (!sampling.all && !sampling.num_frames) {
    if (!(video.fps > 0)) return invalid("the video has no frame rate");
    const double by_rate = double(video.frames) / video.fps * *sampling.fps;
    if (by_rate < 1)
      return invalid("the video is shorter than the time between two frames that the model keeps");
    kept =
        by_rate > double(kMaxCanvasFrames) ? kMaxCanvasFrames + 1 : static_cast<int64_t>(by_rate);
  }
  if (kept > kMaxCanvasFrames) return too_many_frames();
  if (kept > video.frames)
    return invalid(fmt::format("the model keeps {} frames of a video, and this one has {}", kept,
                               video.frames));
  std::vector<int64_t> indices;
  if (sampling.all) {
    indices.resize(static_cast<size_t>(kept));
    std::iota(indices.begin(), indices.end(), 0);
    return indices;
  }
  // torch.arange(first, frames, step).int(), where the values are floats
  const double frames = double(video.frames), step = frames / double(kept),
               first = sampling.first.value_or(step / 2);
  const double count = std::ceil((frames - first) / step);
  for (double i = 0; i < count; ++i)
    indices.push_back(
        std::min(static_cast<int64_t>(static_cast<float>(first + i * step)), video.frames - 1));
  if (indices.empty()) return invalid("the video ends before the first frame that the model keeps");
  return indices;
}

}  // namespace valora::media
