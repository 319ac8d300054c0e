// Settings of preprocessor_config.json and video_preprocessor_config.json for InternVL's
// processors (GotOcr2ImageProcessor, InternVLVideoProcessor).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/json/json.h"
#include "media/processors/processor_settings.h"
#include "media/video/video.h"

namespace valora::media {

inline constexpr int kMaxCanvasTiles = 1024, kMaxCanvasTile = 1 << 13;

struct CanvasSettings {
  int tile = 384;              // pixels per side
  int least = 1, most = 12;    // tiles of a picture, not counting the whole one; most 1: not tiled
  bool adds_thumbnail = true;  // the whole picture at a tile's size, after its tiles
  PixelValues values;
};

// Which frames of a video file are kept.
struct CanvasSampling {
  bool all = true;
  std::optional<int64_t> num_frames;  // instead of a rate
  std::optional<double> fps;
  std::optional<double> first;  // index of the first frame; absent: half a step
};

struct CanvasVideos {
  PixelValues values;
  CanvasSampling sampling;
};

// json: an object. kUnprocessable names a setting that is unknown and neither null nor false.
// crop_to_patches has no effect, because the reference's prompt processor always tiles pictures.
Result<CanvasSettings> read_canvas_settings(const Json& json);
// For videos, whose frames are not tiled.
Result<CanvasSettings> read_canvas_videos(Json json);
Result<CanvasSampling> read_canvas_sampling(const Json& json);

Result<std::vector<int64_t>> sample_canvas(const VideoInfo& video, const CanvasSampling& sampling);

}  // namespace valora::media
