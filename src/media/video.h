// Video files to sampled frames through libav.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "media/image.h"

namespace valora::media {

struct VideoInfo {
  int64_t frames = 0;  // counted by decoding where the container does not say
  double fps = 0;
  int width = 0;
  int height = 0;
};

// The indices of the frames to keep, ascending, for a video of this shape; each family has its rule.
using FrameSampler = std::function<Result<std::vector<int64_t>>(const VideoInfo&)>;

struct Video {
  VideoInfo info;
  std::vector<Image> frames;  // the sampled ones, all of one size
};

// No video stream or no decodable frame: kInvalidArgument.
Result<Video> decode_video(std::span<const uint8_t> bytes, const FrameSampler& sampler, const Limits& limits);

}  // namespace valora::media
