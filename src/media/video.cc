#include "media/video.h"

#include <fmt/format.h>

#include "media/video_stream.h"

namespace valora::media {
namespace {

Error too_large(std::string message) {
  return {ErrorCode::kPayloadTooLarge, std::move(message), {}};
}

Result<int64_t> count_frames(std::span<const uint8_t> bytes, const Limits& limits,
                             DecodeBudget& budget) {
  VALORA_TRY(stream, VideoStream::open(bytes, limits, budget));
  for (int64_t count = 0;; ++count) {
    VALORA_TRY(frame, stream->next_frame());
    if (!frame) return count;
  }
}

Status check_indices(const std::vector<int64_t>& indices, const VideoInfo& info,
                     const Limits& limits) {
  if (indices.empty()) return internal("no frame of the video was sampled");
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i] < (i == 0 ? 0 : indices[i - 1]) || indices[i] >= info.frames)
      return internal("the sampled frames are out of order or range");
  if (indices.size() > size_t(limits.max_frames))
    return too_large(fmt::format("the video has {} frames after sampling, over the limit of {}",
                                 indices.size(), limits.max_frames));
  if (int64_t(indices.size()) > limits.max_video_pixels / (int64_t{info.width} * info.height))
    return too_large(
        fmt::format("{} sampled video frames of {} x {} pixels are over the limit of {} pixels",
                    indices.size(), info.width, info.height, limits.max_video_pixels));
  return {};
}

// Stores the frames at `indices`. Returns how many frames were decoded: fewer than the last index +
// 1 if the file ends early.
Result<int64_t> read_frames(VideoStream& stream, const std::vector<int64_t>& indices,
                            const Limits& limits, std::vector<Image>& frames) {
  int64_t pixels = 0;
  size_t wanted = 0;
  for (int64_t at = 0;; ++at) {
    if (wanted == indices.size()) return at;
    VALORA_TRY(frame, stream.next_frame());
    if (!frame) return at;
    if (at != indices[wanted]) continue;
    VALORA_TRY(image, stream.to_rgb(*frame));
    if (!frames.empty() && (image.width != frames[0].width || image.height != frames[0].height))
      return invalid("the video changes its frame size");
    // The container's size was checked, but decoded frames may differ from it.
    for (; wanted < indices.size() && indices[wanted] == at; ++wanted) {
      pixels += int64_t{image.width} * image.height;
      if (pixels > limits.max_video_pixels)
        return too_large("the video's frames are larger than its header says");
      frames.push_back(image);
    }
  }
}

}  // namespace

Result<Video> decode_video(std::span<const uint8_t> bytes, const FrameSampler& sampler,
                           const Limits& limits, const std::stop_token& stop) {
  if (bytes.empty()) return invalid("the video is empty");
  if (bytes.size() > limits.max_video_bytes)
    return too_large(fmt::format("the video of {} bytes is over the limit of {} bytes",
                                 bytes.size(), limits.max_video_bytes));
  DecodeBudget budget{limits.max_decoded_frames,
                      std::chrono::steady_clock::now() + limits.max_decode_time, stop};

  Video video;
  for (bool count_is_exact = false;;) {
    VALORA_TRY(stream, VideoStream::open(bytes, limits, budget));
    const int64_t exact_frames = video.info.frames;
    video.info = stream->info();
    if (count_is_exact) video.info.frames = exact_frames;
    if (video.info.frames == 0 && !count_is_exact) {
      VALORA_TRY(counted, count_frames(bytes, limits, budget));
      video.info.frames = counted;
      count_is_exact = true;
    }
    if (video.info.frames == 0) return invalid("the video has no frame that can be decoded");
    if (video.info.fps <= 0 && stream->duration() > 0)
      video.info.fps = double(video.info.frames) / stream->duration();

    VALORA_TRY(indices, sampler(video.info));
    VALORA_CHECK(check_indices(indices, video.info, limits));
    video.frames.clear();
    VALORA_TRY(passed, read_frames(*stream, indices, limits, video.frames));
    if (video.frames.size() == indices.size()) {
      video.info.width = video.frames[0].width;
      video.info.height = video.frames[0].height;
      video.indices = std::move(indices);
      return video;
    }
    if (count_is_exact) return invalid("the video decodes differently on each pass");
    video.info.frames = passed;
    count_is_exact = true;
  }
}

}  // namespace valora::media
