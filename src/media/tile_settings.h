// Settings of preprocessor_config.json and video_preprocessor_config.json for Idefics3's and
// SmolVLM's processors.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "media/processor_settings.h"
#include "media/smart_resize.h"
#include "media/video.h"

namespace valora::media {

struct TileSettings {
  bool do_resize = true;
  int longest_edge = 4 * 364;  // 0: resized to `fixed`
  PixelSize fixed;
  bool splits = true;
  int tile = 364;  // pixels per side
  Resample filter = Resample::kLanczos;
  PixelValues values;
};

// Of a video file.
struct TileSampling {
  int64_t most = 0;  // frames; 0: the files do not say
  double fps = 0;    // frames kept per second
};

// kUnprocessable names a setting that is unknown and neither null nor false. json: an object, but
// for read_tile_settings().
Result<TileSettings> read_tile_settings(const Json& json);
// Of videos, whose files have the keys of pictures and more.
Result<TileSettings> read_tiled_videos(Json json);
// From a video_preprocessor_config.json, or the "video_sampling" of older files.
Result<TileSampling> read_tile_sampling(const Json& json);
// The frames that are kept: as many as the rate says, spread over the video; a second at each end
// of a long one is left out.
Result<std::vector<int64_t>> sample_tiled(const VideoInfo& video, const TileSampling& sampling);

}  // namespace valora::media
