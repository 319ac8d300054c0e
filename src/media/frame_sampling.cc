#include "media/frame_sampling.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace valora::media {
namespace {

// Far above what models sample. A settings file may name any number, and a container may claim as
// many frames.
constexpr int64_t kMaxSampledFrames = int64_t{1} << 16;

Result<int64_t> frames_to_keep(const VideoInfo& video, const FrameSampling& sampling) {
  const int64_t patch = sampling.temporal_patch;
  if (sampling.num_frames) {
    if (*sampling.num_frames > kMaxSampledFrames) return kMaxSampledFrames + 1;
    const auto wanted =
        static_cast<int64_t>(std::nearbyint(double(*sampling.num_frames) / double(patch))) * patch;
    if (wanted > video.frames)
      return invalid(
          fmt::format("the video has {} frames, fewer than the {} that the model samples",
                      video.frames, wanted));
    return wanted;
  }
  if (!(video.fps > 0)) return invalid("the video has no frame rate");
  const int64_t most =
      std::min({sampling.max_frames, video.frames, kMaxSampledFrames + patch}) / patch * patch;
  const double by_rate = double(video.frames) / video.fps * sampling.fps;
  const double kept = std::min(std::max(by_rate, double(sampling.min_frames)), double(most));
  return static_cast<int64_t>(kept) / patch * patch;
}

}  // namespace

Result<std::vector<int64_t>> sample_frames(const VideoInfo& video, const FrameSampling& sampling) {
  if (video.frames <= 0) return invalid("the video has no frames");
  VALORA_TRY(wanted, frames_to_keep(video, sampling));
  if (wanted > kMaxSampledFrames)
    return invalid(
        fmt::format("the model samples more than {} frames of the video", kMaxSampledFrames));
  const int64_t kept =
      wanted > 0 ? wanted : std::min<int64_t>(video.frames, sampling.temporal_patch);
  std::vector<int64_t> indices(static_cast<size_t>(kept));
  // The reference computes the indices in 32-bit floats, which may be off by one beyond about
  // 10,000 frames.
  for (int64_t i = 0; i < kept; ++i)
    indices[i] = static_cast<int64_t>(__int128{i} * video.frames / kept);
  return indices;
}

}  // namespace valora::media
