#include "media/video/frame_sampling.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace valora::media {
namespace {

// Far above what models sample. A settings file may ask for any number of frames, and a container
// may claim to have that many.
constexpr int64_t kMaxSampledFrames = int64_t{1} << 16;
// Up to this limit, doubles represent frame counts exactly.
constexpr int64_t kMaxCountedFrames = int64_t{1} << 52;

Error too_many_sampled() {
  return invalid(
      fmt::format("the model samples more than {} frames of the video", kMaxSampledFrames));
}

Error no_frame_rate() { return invalid("the video has no frame rate"); }

// Rounds to a multiple of the temporal patch, half to even as in Python.
int64_t whole_patches(int64_t frames, int64_t patch) {
  return static_cast<int64_t>(std::nearbyint(double(frames) / double(patch))) * patch;
}

Result<int64_t> frames_to_keep(const VideoInfo& video, const FrameSampling& sampling) {
  const int64_t patch = sampling.both_ends ? 1 : sampling.temporal_patch;
  if (sampling.num_frames) {
    if (*sampling.num_frames > kMaxSampledFrames) return kMaxSampledFrames + 1;
    const int64_t wanted = whole_patches(*sampling.num_frames, patch);
    if (wanted > video.frames)
      return invalid(
          fmt::format("the video has {} frames, fewer than the {} that the model samples",
                      video.frames, wanted));
    return wanted;
  }
  if (!(video.fps > 0)) return no_frame_rate();
  const int64_t most =
      std::min({sampling.max_frames, video.frames, kMaxSampledFrames + patch}) / patch * patch;
  const double by_rate = double(video.frames) / video.fps * sampling.fps;
  const double kept = std::min(std::max(by_rate, double(sampling.min_frames)), double(most));
  return static_cast<int64_t>(kept) / patch * patch;
}

// numpy.linspace(0, frames - 1, kept).round()
std::vector<int64_t> spread_rounded(int64_t frames, int64_t kept) {
  const double step = kept > 1 ? double(frames - 1) / double(kept - 1) : 0;
  std::vector<int64_t> indices(static_cast<size_t>(kept));
  for (int64_t i = 0; i < kept; ++i)
    indices[i] = static_cast<int64_t>(std::nearbyint(double(i) * step));
  if (kept > 1) indices.back() = frames - 1;
  return indices;
}

Result<std::vector<int64_t>> sample(const VideoInfo& video, const FrameSampling& sampling) {
  VALORA_TRY(wanted, frames_to_keep(video, sampling));
  if (wanted > kMaxSampledFrames) return too_many_sampled();
  if (sampling.both_ends) return spread_rounded(video.frames, std::max<int64_t>(wanted, 1));
  const int64_t kept =
      wanted > 0 ? wanted : std::min<int64_t>(video.frames, sampling.temporal_patch);
  std::vector<int64_t> indices(static_cast<size_t>(kept));
  // The reference computes the indices in 32-bit floats, so beyond about 10,000 frames its indices
  // may be off by one.
  for (int64_t i = 0; i < kept; ++i)
    indices[i] = static_cast<int64_t>(__int128{i} * video.frames / kept);
  return indices;
}

struct FrameSpan {
  int64_t first, last;
  int64_t frames() const { return last - first + 1; }
};

Result<FrameSpan> span_of(const VideoInfo& video, const SpanSampling& sampling) {
  const FrameSpan whole{0, video.frames - 1};
  if (!sampling.start && !sampling.end) return whole;
  if (!(video.fps > 0)) return no_frame_rate();
  const double seconds = double(video.frames) / video.fps;
  const auto frame_at = [&](double time) { return std::clamp(time, 0.0, seconds) * video.fps; };
  FrameSpan span = whole;
  if (sampling.start) span.first = static_cast<int64_t>(std::ceil(frame_at(*sampling.start)));
  if (sampling.end)
    span.last = std::min(static_cast<int64_t>(std::floor(frame_at(*sampling.end))), whole.last);
  if (span.first < span.last) return span;
  return invalid(fmt::format(
      "video_start and video_end leave the frames from {} to {} of the video's {:.2f} seconds",
      span.first, span.last, seconds));
}

Result<int64_t> frames_of_span(int64_t frames, double video_fps, const SpanSampling& sampling) {
  const int64_t patch = sampling.temporal_patch;
  if (sampling.nframes) return whole_patches(std::min(*sampling.nframes, kMaxCountedFrames), patch);
  if (!(video_fps > 0)) return no_frame_rate();
  const int64_t least = (std::min(sampling.min_frames, kMaxCountedFrames) + patch - 1) / patch,
                most = std::min(sampling.max_frames, frames) / patch;
  const double by_rate = std::max(double(frames) / video_fps * sampling.fps, double(least * patch));
  const double kept = std::min({by_rate, double(most * patch), double(frames)});
  return static_cast<int64_t>(kept) / patch * patch;
}

// torch.linspace(first, last, kept).round() in 32-bit floats, computed from both ends towards the
// middle.
std::vector<int64_t> spread_both_ends(const FrameSpan& span, int64_t kept) {
  const auto first = static_cast<float>(span.first), last = static_cast<float>(span.last);
  const float step = kept > 1 ? (last - first) / static_cast<float>(kept - 1) : 0;
  std::vector<int64_t> indices(static_cast<size_t>(kept));
  for (int64_t i = 0; i < kept; ++i) {
    const float at = i < kept / 2 ? first + step * static_cast<float>(i)
                                  : last - step * static_cast<float>(kept - i - 1);
    indices[i] = std::clamp(static_cast<int64_t>(std::nearbyint(at)), span.first, span.last);
  }
  return indices;
}

Result<std::vector<int64_t>> sample(const VideoInfo& video, const SpanSampling& sampling) {
  VALORA_TRY(span, span_of(video, sampling));
  VALORA_TRY(kept, frames_of_span(span.frames(), video.fps, sampling));
  if (kept > span.frames() || kept < sampling.temporal_patch)
    return invalid(fmt::format("{} frames are requested, but this video allows from {} to {}", kept,
                               sampling.temporal_patch, span.frames()));
  if (kept > kMaxSampledFrames) return too_many_sampled();
  return spread_both_ends(span, kept);
}

// numpy.linspace(0, frames - 1, kept, dtype=int)
Result<std::vector<int64_t>> sample(const VideoInfo& video, const UniformSampling& sampling) {
  int64_t kept = std::min(sampling.num_frames.value_or(video.frames), video.frames);
  if (sampling.fps) {
    if (!(video.fps > 0)) return no_frame_rate();
    const double by_rate = std::floor(double(video.frames) / video.fps * *sampling.fps);
    kept = static_cast<int64_t>(std::min(double(kept), by_rate));
  }
  kept = std::max<int64_t>(kept, 1);
  if (kept > kMaxSampledFrames) return too_many_sampled();
  const int64_t last = video.frames - 1;
  const double step = kept > 1 ? double(last) / double(kept - 1) : 0;
  std::vector<int64_t> indices(static_cast<size_t>(kept));
  for (int64_t i = 0; i < kept; ++i) indices[i] = static_cast<int64_t>(double(i) * step);
  if (kept > 1) indices.back() = last;
  return indices;
}

void add_rule(DigestBuilder& digest, const FrameSampling& s) {
  digest.add(s.num_frames.value_or(0)).add(s.fps).add(s.min_frames).add(s.max_frames);
  digest.add(s.both_ends);
}

void add_rule(DigestBuilder& digest, const SpanSampling& s) {
  digest.add(s.nframes.value_or(0)).add(s.fps).add(s.min_frames).add(s.max_frames);
  digest.add(s.start.has_value()).add(s.start.value_or(0));
  digest.add(s.end.has_value()).add(s.end.value_or(0));
}

void add_rule(DigestBuilder& digest, const UniformSampling& s) {
  digest.add(s.num_frames.value_or(0)).add(s.fps.value_or(0));
}

}  // namespace

Result<std::vector<int64_t>> sample_frames(const VideoInfo& video, const FrameRule& rule) {
  if (video.frames <= 0) return invalid("the video has no frames");
  if (!std::holds_alternative<FrameSampling>(rule) && video.frames > kMaxCountedFrames)
    return too_many_sampled();
  return std::visit([&](const auto& sampling) { return sample(video, sampling); }, rule);
}

double sampled_rate(const VideoInfo& video, int64_t kept, const FrameRule& rule) {
  int64_t frames = video.frames;
  if (const auto* part = std::get_if<SpanSampling>(&rule))
    if (const auto span = span_of(video, *part); span.ok()) frames = span->frames();
  return video.fps * double(kept) / double(frames);
}

void add_to_digest(DigestBuilder& digest, const FrameRule& rule) {
  digest.add(static_cast<int64_t>(rule.index()));
  std::visit([&](const auto& sampling) { add_rule(digest, sampling); }, rule);
}

}  // namespace valora::media
