#include "check.h"
#include "media/video/video.h"

using namespace valora;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  media::Limits limits;
  limits.max_video_bytes = size_t{1} << 18;
  limits.max_pixels = int64_t{1} << 14;
  limits.max_video_pixels = int64_t{1} << 16;
  limits.max_frames = 8;
  limits.max_decoded_frames = 64;
  limits.max_decode_time = std::chrono::seconds(2);
  size_t wanted = 0;
  const media::FrameSampler sampler =
      [&](const media::VideoInfo& info) -> Result<std::vector<int64_t>> {
    FUZZ_CHECK(info.frames > 0 && info.fps >= 0 && info.width > 0 && info.height > 0);
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < info.frames && indices.size() < 4;
         i += std::max<int64_t>(1, info.frames / 4))
      indices.push_back(i);
    wanted = indices.size();
    return indices;
  };
  const auto video = media::decode_video({data, size}, sampler, limits);
  if (!video.ok()) {
    FUZZ_CHECK(!video.error().message.empty());
    return 0;
  }
  FUZZ_CHECK(video->frames.size() == wanted);
  for (const media::Image& frame : video->frames) {
    FUZZ_CHECK(frame.width == video->info.width && frame.height == video->info.height);
    FUZZ_CHECK(int64_t{frame.width} * frame.height <= limits.max_pixels);
    FUZZ_CHECK(frame.rgb.size() == size_t(frame.width) * frame.height * 3);
  }
  return 0;
}
