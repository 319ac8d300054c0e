#include "media/video/video.h"

#include <fmt/format.h>

#include "media/video/video_stream.h"

extern "C" {
#include <libavutil/frame.h>
}

namespace valora::media {
namespace {

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
    return over_limit(fmt::format("the video has {} frames after sampling, over the limit of {}",
                                  indices.size(), limits.max_frames));
  if (int64_t(indices.size()) > limits.max_video_pixels / (int64_t{info.width} * info.height))
    return over_limit(
        fmt::format("{} sampled video frames of {} x {} pixels are over the limit of {} pixels",
                    indices.size(), info.width, info.height, limits.max_video_pixels));
  return {};
}

// Larger frames count as several. A minute of work, at least, then ends what the limits allow.
constexpr int64_t kPixelsPerFrame = int64_t{1} << 19;

// Refuses before decoding what is sure to take longer than a video may.
Status check_work(int64_t frames, const VideoInfo& info, const Limits& limits) {
  if (frames > limits.max_decoded_frames)
    return over_limit(
        fmt::format("{} frames of the video would be decoded, over the limit of {}: send a shorter "
                    "clip, or one "
                    "with more key frames",
                    frames, limits.max_decoded_frames));
  const int64_t most = limits.max_decoded_frames * kPixelsPerFrame;
  if (frames > most / (int64_t{info.width} * info.height))
    return over_limit(fmt::format(
        "{} frames of {} x {} pixels of the video would be decoded, over the limit of {} pixels: "
        "send a shorter or smaller clip",
        frames, info.width, info.height, most));
  return {};
}

// Collects the sampled frames.
class KeptFrames {
 public:
  explicit KeptFrames(const Limits& limits, std::vector<Image>& frames)
      : limits_(limits), frames_(frames) {}

  Status add(const Image& image, int64_t times) {
    if (!frames_.empty() && (image.width != frames_[0].width || image.height != frames_[0].height))
      return invalid("the video changes its frame size");
    // The container's size was checked, but decoded frames may differ from it.
    for (; times > 0; --times) {
      pixels_ += int64_t{image.width} * image.height;
      if (pixels_ > limits_.max_video_pixels)
        return over_limit("the video's frames are larger than its header says");
      frames_.push_back(image);
    }
    return {};
  }

 private:
  const Limits& limits_;
  std::vector<Image>& frames_;
  int64_t pixels_ = 0;
};

// How often `frame` follows in the ascending `indices` from `next` on; advances `next`.
int64_t take_equal(const std::vector<int64_t>& indices, size_t& next, int64_t frame) {
  const size_t first = next;
  while (next < indices.size() && indices[next] == frame) ++next;
  return static_cast<int64_t>(next - first);
}

// Stores the frames at `indices`, decoding only from the key packets before them. False if the
// decoder gives other frames than the index says.
Result<bool> read_indexed(VideoStream& stream, const FrameIndex& index,
                          const std::vector<int64_t>& indices, KeptFrames& kept) {
  size_t next = 0;
  int64_t at = 0;
  for (const FrameIndex::Run& run : index.runs(indices)) {
    VALORA_TRY(skipped, stream.skip_to(run.first));
    if (skipped) at = run.from;
    for (bool first = skipped; next < run.kept_end;) {
      VALORA_TRY(frame, stream.next_frame());
      if (!frame || frame->pts == AV_NOPTS_VALUE || at == index.frames()) return false;
      if (first && frame->pts < index.time(at)) continue;  // a leading picture, incomplete
      if (frame->pts != index.time(at) || (first && !frame->key_frame)) return false;
      first = false;
      if (const int64_t times = take_equal(indices, next, at++)) {
        VALORA_TRY(image, stream.to_rgb(*frame));
        VALORA_CHECK(kept.add(image, times));
      }
    }
  }
  return true;
}

// Stores the frames at `indices`. Returns how many frames were decoded: fewer than the last index +
// 1 if the file ends early.
Result<int64_t> read_frames(VideoStream& stream, const std::vector<int64_t>& indices,
                            const Limits& limits, std::vector<Image>& frames) {
  KeptFrames kept(limits, frames);
  size_t next = 0;
  for (int64_t at = 0;; ++at) {
    if (next == indices.size()) return at;
    VALORA_TRY(frame, stream.next_frame());
    if (!frame) return at;
    const int64_t times = take_equal(indices, next, at);
    if (times == 0) continue;
    VALORA_TRY(image, stream.to_rgb(*frame));
    VALORA_CHECK(kept.add(image, times));
  }
}

struct Source {
  std::span<const uint8_t> bytes;
  const FrameSampler& sampler;
  const Limits& limits;
  DecodeBudget& budget;
};

void set_frames(VideoInfo& info, int64_t frames, const VideoStream& stream) {
  info.frames = frames;
  if (info.fps <= 0 && stream.duration() > 0) info.fps = double(frames) / stream.duration();
}

Video finished(Video video, std::vector<int64_t> indices) {
  video.info.width = video.frames[0].width;
  video.info.height = video.frames[0].height;
  video.indices = std::move(indices);
  return video;
}

// Decodes only the parts that hold sampled frames. Absent if the file's packets do not tell its
// frames.
Result<std::optional<Video>> decode_parts(const Source& source, const FrameIndex& index) {
  const Limits& limits = source.limits;
  VALORA_TRY(stream, VideoStream::open(source.bytes, limits, source.budget));
  Video video;
  video.info = stream->info();
  set_frames(video.info, index.frames(), *stream);
  VALORA_TRY(indices, source.sampler(video.info));
  VALORA_CHECK(check_indices(indices, video.info, limits));
  VALORA_CHECK(check_work(packets_of(index.runs(indices)), video.info, limits));
  KeptFrames kept(limits, video.frames);
  VALORA_TRY(as_told, read_indexed(*stream, index, indices, kept));
  if (!as_told) return std::optional<Video>();
  return std::optional(finished(std::move(video), std::move(indices)));
}

// Decodes from the first frame to the last sampled one. packets: of the whole file.
Result<Video> decode_from_start(const Source& source, int64_t packets) {
  const Limits& limits = source.limits;
  Video video;
  for (bool count_is_exact = false;;) {
    VALORA_TRY(stream, VideoStream::open(source.bytes, limits, source.budget));
    const int64_t exact_frames = video.info.frames;
    video.info = stream->info();
    if (count_is_exact) video.info.frames = exact_frames;
    if (video.info.frames == 0 && !count_is_exact) {
      VALORA_CHECK(check_work(packets, video.info, limits));
      VALORA_TRY(counted, count_frames(source.bytes, limits, source.budget));
      video.info.frames = counted;
      count_is_exact = true;
    }
    if (video.info.frames == 0) return invalid("the video has no frame that can be decoded");
    set_frames(video.info, video.info.frames, *stream);

    VALORA_TRY(indices, source.sampler(video.info));
    VALORA_CHECK(check_indices(indices, video.info, limits));
    VALORA_CHECK(check_work(std::min(indices.back() + 1, packets), video.info, limits));
    video.frames.clear();
    VALORA_TRY(passed, read_frames(*stream, indices, limits, video.frames));
    if (video.frames.size() == indices.size())
      return finished(std::move(video), std::move(indices));
    if (count_is_exact) return invalid("the video decodes differently on each pass");
    video.info.frames = passed;
    count_is_exact = true;
  }
}

}  // namespace

Result<Video> decode_video(std::span<const uint8_t> bytes, const FrameSampler& sampler,
                           const Limits& limits, const std::stop_token& stop) {
  if (bytes.empty()) return invalid("the video is empty");
  if (bytes.size() > limits.max_video_bytes)
    return over_limit(fmt::format("the video of {} bytes is over the limit of {} bytes",
                                  bytes.size(), limits.max_video_bytes));
  DecodeBudget budget{limits.max_decoded_frames,
                      std::chrono::steady_clock::now() + limits.max_decode_time, stop};
  VALORA_TRY(stream, VideoStream::open(bytes, limits, budget));
  VALORA_TRY(marks, stream->packets());
  stream.reset();
  const Source source{bytes, sampler, limits, budget};
  if (const auto index = FrameIndex::from(marks)) {
    VALORA_TRY(video, decode_parts(source, *index));
    if (video) return std::move(*video);
  }
  return decode_from_start(source, static_cast<int64_t>(marks.size()));
}

}  // namespace valora::media
