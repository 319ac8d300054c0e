// Settings of preprocessor_config.json for Qwen's image and video processors.
#pragma once

#include <optional>

#include "base/json/json.h"
#include "media/processors/processor_settings.h"
#include "media/processors/smart_resize.h"
#include "media/video/frame_sampling.h"

namespace valora::media {

struct PatchSettings {
  bool do_resize = true;
  PixelValues values;
  PixelBounds pixels;
  // Resize pictures to what smart_resize makes of this size, not of their own size.
  std::optional<PixelSize> resized;
  double total_pixels = 0;   // over all frames of a video; 0: no bound
  bool whole_sides = false;  // as in qwen_vl_utils, no side shrinks below one merge block
  // Videos: frames share the pixels of this many tokens (cap_pixels_per_frame); 0: no bound.
  int64_t video_tokens = 0;
  // Videos: `pixels` bounds all frames together and video_tokens each frame (Qwen3-VL).
  bool whole_video = false;
  int patch_size = 14;
  int temporal_patch_size = 2;
  int merge_size = 2;
};

// `size` may also be {min_pixels, max_pixels}. The keys min_pixels and max_pixels take precedence
// over `size`, as in the reference's fast class (the slow class of transformers 4.57 ignores `size`
// in a file). kUnprocessable names a setting that is unknown and neither null nor false.
Result<PatchSettings> read_image_settings(const Json& json);
Result<PatchSettings> read_video_settings(const Json& json);
Result<FrameSampling> read_frame_sampling(const Json& json);
// For Qwen3-VL's videos.
Result<PatchSettings> read_whole_video_settings(const Json& json);

}  // namespace valora::media
