// What preprocessor_config.json says to Qwen2-VL's image and video processors.
#pragma once

#include <array>

#include "base/json.h"
#include "media/frame_sampling.h"
#include "media/smart_resize.h"

namespace valora::media {

struct PatchSettings {
  bool do_resize = true;
  bool do_rescale = true;
  bool do_normalize = true;
  PixelBounds pixels;
  double rescale_factor = 1.0 / 255.0;
  std::array<double, 3> mean{0.48145466, 0.4578275, 0.40821073};
  std::array<double, 3> std{0.26862954, 0.26130258, 0.27577711};
  int patch_size = 14;
  int temporal_patch_size = 2;
  int merge_size = 2;
};

// min_pixels and max_pixels win over size.{shortest_edge,longest_edge}, as in the reference's fast class
// (transformers 4.57's slow class ignores `size` in a file). kUnprocessable names a setting that is
// unknown and neither null nor false.
Result<PatchSettings> read_image_settings(const Json& json);
Result<PatchSettings> read_video_settings(const Json& json);
Result<FrameSampling> read_frame_sampling(const Json& json);

}  // namespace valora::media
