// Samples frames from video files through libav, decoding from memory on the calling thread only.
// Demuxers may not open other files or URLs named in the content.
#pragma once

#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "media/image/image.h"

namespace valora::media {

struct VideoInfo {
  // Counted by packets, or by decoding if packets do not tell frames.
  int64_t frames = 0;
  double fps = 0;  // the average over the file; 0: unknown
  int width = 0;   // as displayed: after rotation by quarter turns
  int height = 0;
};

// Returns the indices of the frames to keep, ascending. Each family has its own rule.
using FrameSampler = std::function<Result<std::vector<int64_t>>(const VideoInfo&)>;

struct Video {
  VideoInfo info;
  std::vector<Image> frames;     // the sampled frames, all of equal size
  std::vector<int64_t> indices;  // of the sampled frames in the file
};

// kInvalidArgument without a video stream or a decodable frame; kPayloadTooLarge above a limit, if
// possible before anything is decoded. Only the groups of pictures that hold sampled frames are
// decoded; if a group gives other frames than its packets announce, the file is decoded from its
// start, and frames lost in a damaged or truncated file are not counted. The sampler is called
// again if the first frame count turns out wrong. If a stop is requested, decoding ends at the next
// frame: kCancelled.
Result<Video> decode_video(std::span<const uint8_t> bytes, const FrameSampler& sampler,
                           const Limits& limits, const std::stop_token& stop = {});

}  // namespace valora::media
