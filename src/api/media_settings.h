// How images and videos are prepared instead of the model's own settings: of a content part, of a
// request, or of all requests of a server. Absent values are those of the next one in this order,
// at last the model's own.
#pragma once

#include <cstdint>
#include <optional>

namespace valora {

// Frames of a video file as qwen_vl_utils chooses them: evenly from the first to the last frame
// between two times, both included. A number of frames excludes a rate.
struct PartFrames {
  std::optional<double> fps;
  std::optional<int64_t> nframes;
  std::optional<int64_t> min_frames, max_frames;  // with a rate
  std::optional<double> video_start, video_end;   // seconds
  bool operator==(const PartFrames&) const = default;
};

// Frames of a video file as vLLM's loader chooses them: evenly over the whole video, both ends
// included, the lower number of the two.
struct LoaderFrames {
  std::optional<int64_t> num_frames;  // at most; -1: all. Absent: vLLM's 32
  std::optional<double> fps;          // at most, per second; -1: any
  bool keeps_all() const { return num_frames == -1 && fps.value_or(-1) == -1; }
  bool operator==(const LoaderFrames&) const = default;
};

struct MediaSettings {
  std::optional<int64_t> min_pixels, max_pixels;  // of each image and video frame after resizing
  std::optional<int64_t> total_pixels;            // of a video: all its frames
  std::optional<int64_t> resized_height, resized_width;
  // "mm_processor_kwargs": the rate at which the model's processor samples files, or the rate of
  // frames that it does not sample.
  std::optional<double> fps;
  std::optional<bool> do_sample_frames;
  std::optional<LoaderFrames> loader;  // of "media_io_kwargs"
  std::optional<PartFrames> frames;    // of a content part
  std::optional<double> sample_fps;    // of a content part: the rate of a list of frames
  bool operator==(const MediaSettings&) const = default;
};

// The settings of a request on a server with these defaults, key by key. A request that says how
// frames are chosen gets no default that also does.
MediaSettings with_defaults(MediaSettings request, const MediaSettings& defaults);

// The settings of a content part in such a request, key by key.
MediaSettings in_request(MediaSettings part, const MediaSettings& request);

}  // namespace valora
