// The frames that are kept of a video file.
#pragma once

#include <optional>
#include <variant>

#include "base/digest.h"
#include "media/video.h"

namespace valora::media {

// As Qwen's video processors sample: num_frames, or the video's seconds times fps, clamped to the
// minimum and maximum and to the frames that there are; rounded to a multiple of the temporal patch
// and spread evenly from the first frame. A video shorter than one temporal patch keeps all frames.
// both_ends, as Qwen3-VL's: not rounded, and spread from the first frame to the last.
struct FrameSampling {
  std::optional<int64_t> num_frames;  // a fixed number instead of a rate
  double fps = 2.0;
  int64_t min_frames = 4;
  int64_t max_frames = 768;
  int temporal_patch = 2;
  bool both_ends = false;
};

// As qwen_vl_utils samples: the frames between two times, both ends included. nframes, or the
// seconds of that part times fps within the minimum and maximum, in multiples of the temporal
// patch. Fewer than one patch, or more than there are, is an error.
struct SpanSampling {
  std::optional<int64_t> nframes;  // instead of a rate
  double fps = 2.0;
  int64_t min_frames = 4;
  int64_t max_frames = 768;
  std::optional<double> start, end;  // seconds; absent: those of the video
  int temporal_patch = 2;
};

// As vLLM's loader samples: spread over the whole video, both ends included, the lower number of
// the two, at least one frame.
struct UniformSampling {
  std::optional<int64_t> num_frames;  // absent: all
  std::optional<double> fps;          // absent: any
  bool operator==(const UniformSampling&) const = default;
};

using FrameRule = std::variant<FrameSampling, SpanSampling, UniformSampling>;

Result<std::vector<int64_t>> sample_frames(const VideoInfo& video, const FrameRule& rule);

// Frames per second of the video's time if the rule keeps `kept` frames.
double sampled_rate(const VideoInfo& video, int64_t kept, const FrameRule& rule);

void add_to_digest(DigestBuilder& digest, const FrameRule& rule);

}  // namespace valora::media
