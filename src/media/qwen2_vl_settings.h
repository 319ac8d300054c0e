// Settings of preprocessor_config.json for Qwen2-VL's image and video processors.
#pragma once

#include "base/json.h"
#include "media/frame_sampling.h"
#include "media/processor_settings.h"
#include "media/smart_resize.h"

namespace valora::media {

struct PatchSettings {
  bool do_resize = true;
  PixelValues values;
  PixelBounds pixels;
  int patch_size = 14;
  int temporal_patch_size = 2;
  int merge_size = 2;
};

// min_pixels and max_pixels take precedence over size.{shortest_edge,longest_edge}, as in the
// reference's fast class (the slow class of transformers 4.57 ignores `size` in a file).
// kUnprocessable names a setting that is unknown and neither null nor false.
Result<PatchSettings> read_image_settings(const Json& json);
Result<PatchSettings> read_video_settings(const Json& json);
Result<FrameSampling> read_frame_sampling(const Json& json);

}  // namespace valora::media
