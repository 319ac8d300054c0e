// Overrides the settings of Qwen2-VL's processors for one picture or video.
#pragma once

#include "media/processors/processor.h"
#include "media/processors/qwen2_vl_settings.h"

namespace valora::media {

struct FrameSettings {
  FrameSampling model;         // from the model's files
  FrameRule rule;              // how frames of a video file are chosen
  std::optional<double> rate;  // of the frames, from whatever source; absent: as sampled
};

// kInvalidArgument if a size exceeds the model's own bounds. If only a maximum is given, the
// minimum is lowered to it where needed.
Status override_sizes(PatchSettings& settings, const ProcessorOverrides& overrides);

// kInvalidArgument for an impossible rate, an empty range, or a frame count together with a rate.
Status override_frames(FrameSettings& frames, const ProcessorOverrides& overrides);

// The size after resizing a picture to a requested size: qwen_vl_utils' smart_resize within its own
// bounds of 4 and 16,384 merge blocks.
Result<PixelSize> resized_size(PixelSize size, int factor);

}  // namespace valora::media
