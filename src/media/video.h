// Video files to sampled frames through libav, decoded from memory on the calling thread alone: no
// demuxer may open another file or URL that the content names.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "media/image.h"

namespace valora::media {

struct VideoInfo {
  int64_t frames =
      0;           // counted by decoding where the container does not say, or says more than it has
  double fps = 0;  // 0: unknown
  int width = 0;   // as shown: a stored rotation by quarter turns is applied
  int height = 0;
};

// The indices of the frames to keep, ascending, for a video of this shape; each family has its
// rule.
using FrameSampler = std::function<Result<std::vector<int64_t>>(const VideoInfo&)>;

struct Video {
  VideoInfo info;
  std::vector<Image> frames;  // the sampled ones, all of one size
};

// No video stream or no decodable frame: kInvalidArgument. Over a limit: kPayloadTooLarge. Frames
// that a damaged or cut file has lost are not counted. The sampler may be asked twice, when the
// first count was wrong.
Result<Video> decode_video(std::span<const uint8_t> bytes, const FrameSampler& sampler,
                           const Limits& limits);

}  // namespace valora::media
