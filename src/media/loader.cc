#include "media/loader.h"

#include <new>

#include <fmt/format.h>

#include "media/prepared_cache.h"

namespace valora::media {
namespace {

using Input = Result<VisualInput>;

Status check_tokens(const Result<int64_t>& tokens, const Limits& limits) {
  if (!tokens.ok()) return tokens.error();
  if (tokens.value() > limits.max_visual_tokens)
    return Error{ErrorCode::kPayloadTooLarge,
                 fmt::format("the picture would take {} tokens, over the limit of {}",
                             tokens.value(), limits.max_visual_tokens),
                 {}};
  return {};
}

Input prepare_image(std::span<const uint8_t> bytes, const Processor& processor,
                    const Limits& limits) {
  VALORA_TRY(image, decode_image(bytes, limits));
  VALORA_CHECK(check_tokens(processor.image_tokens(image.width, image.height), limits));
  return processor.image(image);
}

Input prepare_video(std::span<const uint8_t> bytes, const Processor& processor,
                    const Limits& limits) {
  // The tokens are known from the header and the sampling, before memory for the kept frames is
  // allocated.
  const FrameSampler sampler = [&, sample = processor.frame_sampler()](
                                   const VideoInfo& info) -> Result<std::vector<int64_t>> {
    VALORA_TRY(indices, sample(info));
    VALORA_CHECK(check_tokens(
        processor.video_tokens(info.width, info.height, int64_t(indices.size())), limits));
    return indices;
  };
  VALORA_TRY(video, decode_video(bytes, sampler, limits));
  const double sampled_fps =
      video.info.fps * double(video.frames.size()) / double(video.info.frames);
  return processor.video(video.frames, sampled_fps);
}

// A list of frames is a video that its sender has sampled: every frame is kept.
Input prepare_frames(const std::vector<Bytes>& items, const Processor& processor,
                     const Limits& limits) {
  if (items.size() > size_t(limits.max_frames))
    return Error{ErrorCode::kPayloadTooLarge,
                 fmt::format("the video lists {} frames, over the limit of {}", items.size(),
                             limits.max_frames),
                 {}};
  std::vector<Image> frames;
  int64_t pixels = 0;
  for (const Bytes& item : items) {
    VALORA_TRY(frame, decode_image(item, limits));
    pixels += int64_t{frame.width} * frame.height;
    if (pixels > limits.max_video_pixels)
      return Error{ErrorCode::kPayloadTooLarge,
                   fmt::format("the listed video frames are over the limit of {} pixels",
                               limits.max_video_pixels),
                   {}};
    if (frames.empty())
      VALORA_CHECK(check_tokens(
          processor.video_tokens(frame.width, frame.height, int64_t(items.size())), limits));
    frames.push_back(std::move(frame));
  }
  return processor.video(frames, 0);
}

}  // namespace

struct Loader::Impl {
  Result<PreparedInput> prepare_once(const Digest& digest, const std::function<Input()>& prepare) {
    return cache.get(digest, [&]() -> Result<PreparedInput> {
      try {
        VALORA_TRY(input, prepare());
        input.digest = digest;
        return PreparedInput(std::make_shared<VisualInput>(std::move(input)));
      } catch (const std::bad_alloc&) {
        return Error{ErrorCode::kUnavailable,
                     "there is not enough memory for the media of the request: try again later",
                     {}};
      }
    });
  }

  // Equal bytes of another kind of media give other pixels.
  DigestBuilder& begin_digest(DigestBuilder& digest, std::string_view form) const {
    return digest.add(processor->settings_digest()).add(form);
  }

  Result<PreparedInput> load_frames(const std::vector<Bytes>& items) {
    DigestBuilder digest;
    begin_digest(digest, "frames");
    for (const Bytes& item : items) digest.add(std::span<const uint8_t>(item));
    return prepare_once(digest.finish(), [&] { return prepare_frames(items, *processor, limits); });
  }

  const std::shared_ptr<const Processor> processor;
  const FetchPolicy policy;
  const Limits limits;
  PreparedCache cache;
};

Loader::Loader(std::shared_ptr<const Processor> processor, FetchPolicy policy, Limits limits,
               size_t cache_bytes)
    : impl_(new Impl{std::move(processor), std::move(policy), limits, PreparedCache(cache_bytes)}) {
}
Loader::~Loader() = default;

Result<std::shared_ptr<const VisualInput>> Loader::load(const std::string& url, MediaKind kind) {
  const bool image = kind == MediaKind::kImage;
  VALORA_TRY(items,
             fetch(url, kind, image ? impl_->limits.max_bytes : impl_->limits.max_video_bytes,
                   impl_->policy));
  if (image) return load_image_bytes(items.front());
  return is_frame_list(url) ? impl_->load_frames(items) : load_video_bytes(items.front());
}

Result<std::shared_ptr<const VisualInput>> Loader::load_image_bytes(
    std::span<const uint8_t> bytes) {
  DigestBuilder digest;
  impl_->begin_digest(digest, "image").add(bytes);
  return impl_->prepare_once(
      digest.finish(), [&] { return prepare_image(bytes, *impl_->processor, impl_->limits); });
}

Result<std::shared_ptr<const VisualInput>> Loader::load_video_bytes(
    std::span<const uint8_t> bytes) {
  DigestBuilder digest;
  impl_->begin_digest(digest, "video").add(bytes);
  return impl_->prepare_once(
      digest.finish(), [&] { return prepare_video(bytes, *impl_->processor, impl_->limits); });
}

LoaderStats Loader::stats() const { return impl_->cache.stats(); }

}  // namespace valora::media
