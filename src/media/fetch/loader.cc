#include "media/fetch/loader.h"

#include <new>
#include <numeric>

#include <fmt/format.h>

#include "base/video.h"
#include "media/processors/input_parts.h"
#include "media/processors/prepared_cache.h"
#include "media/video/stop.h"

namespace valora::media {
namespace {

using Input = Result<VisualInput>;

Status check_tokens(const char* what, const Result<int64_t>& tokens, const Limits& limits) {
  if (!tokens.ok()) return tokens.error();
  if (tokens.value() > limits.max_visual_tokens)
    return Error{ErrorCode::kPayloadTooLarge,
                 fmt::format("the {} would take {} tokens, over the limit of {}", what,
                             tokens.value(), limits.max_visual_tokens),
                 {}};
  return {};
}

Input prepare_image(std::span<const uint8_t> bytes, const Processor& processor,
                    const Limits& limits) {
  VALORA_TRY(image, decode_image(bytes, limits));
  VALORA_CHECK(check_tokens("picture", processor.image_tokens(image.width, image.height), limits));
  VALORA_TRY(input, processor.image(image));
  input.width = image.width;
  input.height = image.height;
  return input;
}

Input prepare_video(std::span<const uint8_t> bytes, const Processor& processor,
                    const Limits& limits, const std::stop_token& stop) {
  // The number of tokens follows from the header and the sampling; it is checked before memory for
  // the kept frames is allocated.
  const FrameSampler sampler = [&, sample = processor.frame_sampler()](
                                   const VideoInfo& info) -> Result<std::vector<int64_t>> {
    VALORA_TRY(indices, sample(info));
    VALORA_CHECK(check_tokens(
        "video", processor.video_tokens(info.width, info.height, int64_t(indices.size())), limits));
    return indices;
  };
  VALORA_TRY(video, decode_video(bytes, sampler, limits, stop));
  VALORA_TRY(input, processor.video(video.frames,
                                    processor.sampled_fps(video.info, int64_t(video.frames.size())),
                                    stop));
  input.patch_times = processor.patch_times(video.info, video.indices);
  if (video.info.fps > 0) input.seconds = double(video.info.frames) / video.info.fps;
  return input;
}

// A list of frames is a video already sampled by the client: every frame is kept.
Input prepare_frames(const std::vector<Bytes>& items, const Processor& processor,
                     const Limits& limits, const std::stop_token& stop) {
  if (items.size() > size_t(limits.max_frames))
    return Error{ErrorCode::kPayloadTooLarge,
                 fmt::format("the video lists {} frames, over the limit of {}", items.size(),
                             limits.max_frames),
                 {}};
  std::vector<Image> frames;
  int64_t pixels = 0;
  for (const Bytes& item : items) {
    VALORA_CHECK(check_stop(stop));
    VALORA_TRY(frame, decode_image(item, limits));
    pixels += int64_t{frame.width} * frame.height;
    if (pixels > limits.max_video_pixels)
      return Error{ErrorCode::kPayloadTooLarge,
                   fmt::format("the listed video frames are over the limit of {} pixels",
                               limits.max_video_pixels),
                   {}};
    if (frames.empty())
      VALORA_CHECK(check_tokens(
          "video", processor.video_tokens(frame.width, frame.height, int64_t(items.size())),
          limits));
    frames.push_back(std::move(frame));
  }
  VALORA_TRY(input, processor.video(frames, 0, stop));
  std::vector<int64_t> all(frames.size());
  std::iota(all.begin(), all.end(), 0);
  input.patch_times = processor.patch_times({.frames = int64_t(frames.size())}, all);
  return input;
}

}  // namespace

struct Loader::Impl {
  using Prepare = std::function<Input(const std::stop_token&)>;

  Result<PreparedInput> prepare_once(const Digest& digest, const Prepare& prepare,
                                     const std::stop_token& stop) {
    return cache.get(
        digest,
        [&](const std::stop_token& unwanted) -> Result<PreparedInput> {
          try {
            VALORA_TRY(input, prepare(unwanted));
            input.digest = digest;
            cut_parts(input);
            return PreparedInput(std::make_shared<VisualInput>(std::move(input)));
          } catch (const std::bad_alloc&) {
            return Error{ErrorCode::kUnavailable,
                         "there is not enough memory for the media of the request: try again later",
                         {}};
          }
        },
        stop);
  }

  const std::shared_ptr<const Processor> processor;
  const FetchPolicy policy;
  const Limits given;
  Limits limits = given;
  PreparedCache cache;
};

Loader::Loader(std::shared_ptr<const Processor> processor, FetchPolicy policy, Limits limits,
               size_t cache_bytes)
    : impl_(new Impl{std::move(processor), std::move(policy), limits, limits,
                     PreparedCache(cache_bytes)}) {}
Loader::~Loader() = default;

void Loader::limit_tokens(int max_tokens) {
  impl_->limits.max_visual_tokens = std::min(impl_->given.max_visual_tokens, max_tokens);
}

Result<FetchedMedia> Loader::fetch(const std::string& url, MediaKind kind,
                                   const std::stop_token& stop,
                                   std::shared_ptr<const Processor> processor) const {
  FetchedMedia media;
  media.kind = kind;
  media.processor = std::move(processor);
  if (!media.processor) media.processor = impl_->processor;
  const bool image = kind == MediaKind::kImage;
  media.frame_list = !image && is_frame_list(url);
  const size_t most = image ? impl_->limits.max_bytes : impl_->limits.max_video_bytes;
  VALORA_TRY(items, media::fetch(url, kind, most, impl_->policy, stop));
  media.items = std::move(items);
  DigestBuilder digest;
  // The same bytes give other pixels as another kind of media.
  digest.add(media.processor->settings_digest())
      .add(std::string_view(image              ? "image"
                            : media.frame_list ? "frames"
                                               : "video"));
  for (const Bytes& item : media.items) digest.add(std::span<const uint8_t>(item));
  media.digest = digest.finish();
  return media;
}

PreparedInput Loader::find(const FetchedMedia& media) { return impl_->cache.find(media.digest); }

Result<PreparedInput> Loader::prepare(const FetchedMedia& media, const std::stop_token& stop) {
  const Processor& processor = *media.processor;
  const Limits& limits = impl_->limits;
  return impl_->prepare_once(
      media.digest,
      [&](const std::stop_token& unwanted) -> Input {
        if (media.frame_list) return prepare_frames(media.items, processor, limits, unwanted);
        const Bytes& bytes = media.items.front();
        if (media.kind == MediaKind::kImage) return prepare_image(bytes, processor, limits);
        return prepare_video(bytes, processor, limits, unwanted);
      },
      stop);
}

Result<PreparedInput> Loader::load(const std::string& url, MediaKind kind,
                                   const std::stop_token& stop,
                                   std::shared_ptr<const Processor> processor) {
  VALORA_TRY(media, fetch(url, kind, stop, std::move(processor)));
  return prepare(media, stop);
}

const Processor& Loader::processor() const { return *impl_->processor; }

LoaderStats Loader::stats() const { return impl_->cache.stats(); }

}  // namespace valora::media
