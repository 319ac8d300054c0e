// The settings of one picture or video in place of those of Qwen2-VL's processors.
#pragma once

#include "media/processor.h"
#include "media/qwen2_vl_settings.h"

namespace valora::media {

struct FrameSettings {
  FrameSampling model;         // of the model's files
  FrameRule rule;              // how frames of a file are chosen
  std::optional<double> rate;  // of the frames, whatever they were taken from; absent: as sampled
};

// kInvalidArgument: a size beyond the model's own bounds. The minimum is lowered to a maximum that
// is given alone.
Status override_sizes(PatchSettings& settings, const ProcessorOverrides& overrides);

// kInvalidArgument: a rate that no video has, an empty range, or a number and a rate.
Status override_frames(FrameSettings& frames, const ProcessorOverrides& overrides);

// What pictures become that are to have this size: qwen_vl_utils' smart_resize, within its own
// bounds of 4 and 16,384 merge blocks.
Result<PixelSize> resized_size(PixelSize size, int factor);

}  // namespace valora::media
