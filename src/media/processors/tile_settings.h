// Settings of preprocessor_config.json and video_preprocessor_config.json for Idefics3's and
// SmolVLM's processors.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json/json.h"
#include "media/processors/processor_settings.h"
#include "media/processors/smart_resize.h"
#include "media/video/video.h"

namespace valora::media {

struct TileSettings {
  bool do_resize = true;
  int longest_edge = 4 * 364;  // 0: resize to `fixed` instead
  PixelSize fixed;
  bool splits = true;
  int tile = 364;  // pixels per side
  Resample filter = Resample::kLanczos;
  PixelValues values;
};

// How frames of a video file are sampled.
struct TileSampling {
  int64_t most = 0;  // frames; 0: not given in the files
  double fps = 0;    // frames kept per second
};

// kUnprocessable names a setting that is unknown and neither null nor false. json must be an
// object, except for read_tile_settings().
Result<TileSettings> read_tile_settings(const Json& json);
// For videos, whose files have the keys of pictures and more.
Result<TileSettings> read_tiled_videos(Json json);
// Reads a video_preprocessor_config.json, or "video_sampling" in older files.
Result<TileSampling> read_tile_sampling(const Json& json);
// The frames to keep: as many as the rate implies, spread over the video, without the first and the
// last second if the video is long.
Result<std::vector<int64_t>> sample_tiled(const VideoInfo& video, const TileSampling& sampling);

}  // namespace valora::media
