// The frames that Qwen's video processors keep.
#pragma once

#include <optional>

#include "media/video.h"

namespace valora::media {

struct FrameSampling {
  std::optional<int64_t> num_frames;  // a fixed number instead of a rate
  double fps = 2.0;
  int64_t min_frames = 4;
  int64_t max_frames = 768;
  int temporal_patch = 2;
};

// num_frames, or the video's seconds times fps, clamped to the minimum and maximum and to the
// frames that there are; rounded to a multiple of the temporal patch and spread evenly from the
// first frame. A video shorter than one temporal patch keeps all frames.
Result<std::vector<int64_t>> sample_frames(const VideoInfo& video, const FrameSampling& sampling);

}  // namespace valora::media
