// Which frames of a video file are kept.
#pragma once

#include <optional>
#include <variant>

#include "base/digest.h"
#include "media/video/video.h"

namespace valora::media {

// Qwen's video processors: num_frames, or the duration times fps, clamped to the minimum, the
// maximum and the frame count, rounded to a multiple of the temporal patch, and spread evenly from
// the first frame. A video shorter than one temporal patch keeps all frames. both_ends (Qwen3-VL):
// not rounded, and spread from the first frame to the last.
struct FrameSampling {
  std::optional<int64_t> num_frames;  // a fixed number instead of a rate
  double fps = 2.0;
  int64_t min_frames = 4;
  int64_t max_frames = 768;
  int temporal_patch = 2;
  bool both_ends = false;
};

// qwen_vl_utils: the frames between two times, both ends included. nframes, or the duration of that
// span times fps within the minimum and maximum, in multiples of the temporal patch. Less than one
// temporal patch, or more frames than the span has, is an error.
struct SpanSampling {
  std::optional<int64_t> nframes;  // instead of a rate
  double fps = 2.0;
  int64_t min_frames = 4;
  int64_t max_frames = 768;
  std::optional<double> start, end;  // seconds; absent: start and end of the video
  int temporal_patch = 2;
};

// vLLM's loader: spread over the whole video, both ends included; the lower of the two counts, at
// least one frame.
struct UniformSampling {
  std::optional<int64_t> num_frames;  // absent: all
  std::optional<double> fps;          // absent: any
  bool operator==(const UniformSampling&) const = default;
};

using FrameRule = std::variant<FrameSampling, SpanSampling, UniformSampling>;

Result<std::vector<int64_t>> sample_frames(const VideoInfo& video, const FrameRule& rule);

// The rate, in frames per second of video, if the rule keeps `kept` frames.
double sampled_rate(const VideoInfo& video, int64_t kept, const FrameRule& rule);

void add_to_digest(DigestBuilder& digest, const FrameRule& rule);

}  // namespace valora::media
