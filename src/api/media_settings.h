// Overrides of the model's own settings for preparing images and videos. They come from a content
// part, then the request, then the server's defaults; values absent from all three are the model's
// own.
#pragma once

#include <cstdint>
#include <optional>

namespace valora {

// Chooses frames of a video file as qwen_vl_utils does: evenly spaced from the first to the last
// frame between two times, both included. A number of frames excludes a rate.
struct PartFrames {
  std::optional<double> fps;
  std::optional<int64_t> nframes;
  std::optional<int64_t> min_frames, max_frames;  // apply to a rate
  std::optional<double> video_start, video_end;   // seconds
  bool operator==(const PartFrames&) const = default;
};

// Chooses frames of a video file as vLLM's loader does: evenly spaced over the whole video, both
// ends included; the smaller of the two counts applies.
struct LoaderFrames {
  std::optional<int64_t> num_frames;  // at most; -1: all; absent: 32, as in vLLM
  std::optional<double> fps;          // at most, frames per second; -1: any
  bool keeps_all() const { return num_frames == -1 && fps.value_or(-1) == -1; }
  bool operator==(const LoaderFrames&) const = default;
};

struct MediaSettings {
  std::optional<int64_t> min_pixels, max_pixels;  // of each image and video frame after resizing
  std::optional<int64_t> total_pixels;            // of all frames of a video
  std::optional<int64_t> resized_height, resized_width;
  // "mm_processor_kwargs": the rate at which the model's processor samples files, or the frame rate
  // of videos that it does not sample.
  std::optional<double> fps;
  std::optional<bool> do_sample_frames;
  std::optional<LoaderFrames> loader;  // from "media_io_kwargs"
  std::optional<PartFrames> frames;    // from a content part
  std::optional<double> sample_fps;    // from a content part: frame rate of a list of frames
  bool operator==(const MediaSettings&) const = default;
};

// Fills in the server's defaults, key by key. A request that says how to choose frames gets no
// default that also does.
MediaSettings with_defaults(MediaSettings request, const MediaSettings& defaults);

// Fills in the request's settings for a content part, key by key.
MediaSettings in_request(MediaSettings part, const MediaSettings& request);

}  // namespace valora
