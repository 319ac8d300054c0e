#include "media/processors/qwen2_vl_overrides.h"

#include <cmath>

#include <fmt/format.h>

#include "base/video.h"

namespace valora::media {
namespace {

constexpr int64_t kMaxTotal = int64_t{1} << 40;
constexpr int64_t kMaxResized = 1 << 16;
constexpr int64_t kMaxFrameNumber = int64_t{1} << 30;

Status check_range(const char* name, const std::optional<int64_t>& value, int64_t most) {
  if (!value || (*value >= 1 && *value <= most)) return {};
  return invalid(fmt::format("{} must be from 1 to {}, not {}", name, most, *value));
}

// The comparison also rejects NaN.
Status check_rate(const char* name, const std::optional<double>& fps) {
  if (!fps || (*fps > 0 && *fps <= kMaxFps)) return {};
  return invalid(fmt::format("{} must be above 0 and at most {}", name, kMaxFps));
}

Status override_bounds(PixelBounds& pixels, const ProcessorOverrides& overrides) {
  const auto limit = static_cast<int64_t>(pixels.max);
  const int64_t max = overrides.max_pixels.value_or(limit);
  if (max < 1 || max > limit)
    return invalid(
        fmt::format("max_pixels must be from 1 to {}, the model's own, not {}", limit, max));
  const int64_t min =
      overrides.min_pixels.value_or(std::min(static_cast<int64_t>(pixels.min), max));
  if (min < 1 || min > max)
    return invalid(fmt::format("min_pixels must be from 1 to max_pixels, {}, not {}", max, min));
  pixels = {double(min), double(max)};
  return {};
}

Status override_resized(PatchSettings& settings, const ProcessorOverrides& overrides) {
  const auto &height = overrides.resized_height, &width = overrides.resized_width;
  if (!height || !width) return invalid("resized_height and resized_width must be given together");
  VALORA_CHECK(check_range("resized_height", height, kMaxResized));
  VALORA_CHECK(check_range("resized_width", width, kMaxResized));
  const PixelSize asked{static_cast<int>(*width), static_cast<int>(*height)};
  VALORA_TRY(size, resized_size(asked, settings.patch_size * settings.merge_size));
  if (const int64_t area = int64_t{size.width} * size.height; double(area) > settings.pixels.max)
    return invalid(
        fmt::format("resized_height and resized_width give {} x {} pixels, more than the model's "
                    "own max_pixels, {}",
                    size.height, size.width, settings.pixels.max));
  settings.resized = asked;
  return {};
}

Status override_span(FrameSettings& frames, const ProcessorOverrides::SpanChoice& choice) {
  if (choice.fps && choice.nframes) return invalid("fps and nframes exclude each other");
  VALORA_CHECK(check_rate("fps", choice.fps));
  VALORA_CHECK(check_range("nframes", choice.nframes, kMaxFrameNumber));
  VALORA_CHECK(check_range("min_frames", choice.min_frames, kMaxFrameNumber));
  VALORA_CHECK(check_range("max_frames", choice.max_frames, kMaxFrameNumber));
  for (const auto& [name, time] :
       {std::pair{"video_start", choice.start}, std::pair{"video_end", choice.end}})
    if (time && !std::isfinite(*time))
      return invalid(fmt::format("{} must be a number of seconds", name));
  const FrameSampling& model = frames.model;
  frames.rule = SpanSampling{.nframes = choice.nframes,
                             .fps = choice.fps.value_or(model.fps),
                             .min_frames = choice.min_frames.value_or(model.min_frames),
                             .max_frames = choice.max_frames.value_or(model.max_frames),
                             .start = choice.start,
                             .end = choice.end,
                             .temporal_patch = model.temporal_patch};
  return {};
}

}  // namespace

Status override_sizes(PatchSettings& settings, const ProcessorOverrides& overrides) {
  if (!overrides.min_pixels && !overrides.max_pixels && !overrides.total_pixels &&
      !overrides.resized_height && !overrides.resized_width)
    return {};
  if (!settings.do_resize) return invalid("the model's processor does not resize");
  if (overrides.resized_height || overrides.resized_width)
    return override_resized(settings, overrides);  // overrides all bounds, as in qwen_vl_utils
  if (settings.whole_video)
    return invalid(
        "min_pixels, max_pixels and total_pixels of a video are not supported for this model, "
        "which bounds the pixels of all frames together");
  VALORA_CHECK(override_bounds(settings.pixels, overrides));
  VALORA_CHECK(check_range("total_pixels", overrides.total_pixels, kMaxTotal));
  if (overrides.total_pixels) settings.total_pixels = double(*overrides.total_pixels);
  settings.whole_sides = overrides.whole_sides;
  return {};
}

Status override_frames(FrameSettings& frames, const ProcessorOverrides& overrides) {
  VALORA_CHECK(check_rate("fps", overrides.fps));
  VALORA_CHECK(check_rate("the rate of the frames", overrides.frame_rate));
  frames.rate = overrides.frame_rate;
  if (const auto* choice = std::get_if<ProcessorOverrides::SpanChoice>(&overrides.frames))
    return override_span(frames, *choice);
  if (const auto* uniform = std::get_if<UniformSampling>(&overrides.frames)) {
    VALORA_CHECK(check_rate("fps", uniform->fps));
    frames.rule = *uniform;
  } else if (overrides.fps) {
    frames.model.num_frames.reset();
    frames.model.fps = *overrides.fps;
    frames.rule = frames.model;
  }
  return {};
}

Result<PixelSize> resized_size(PixelSize size, int factor) {
  const double block = double(factor) * factor;
  return smart_resize(size.width, size.height, factor, {4 * block, 16'384 * block}, factor);
}

}  // namespace valora::media
