#include "serving/prompts/media_choice.h"

namespace valora::serving {
namespace {

using Overrides = media::ProcessorOverrides;

constexpr int64_t kLoaderFrames = 32;  // the default limit of vLLM's loader

bool has_sizes(const MediaSettings& part) {
  return part.min_pixels || part.max_pixels || part.total_pixels || part.resized_height ||
         part.resized_width;
}

media::UniformSampling uniform(const LoaderFrames& frames) {
  const auto given = [](const auto& value) { return value == -1 ? std::nullopt : value; };
  return {given(frames.num_frames ? frames.num_frames : std::optional(kLoaderFrames)),
          given(frames.fps)};
}

Status choose_of_list(const MediaSettings& settings, Overrides& overrides) {
  if (settings.frames)
    return invalid("a list of frames is taken as it is; the rate of its frames is sample_fps");
  overrides.frame_rate = settings.sample_fps ? settings.sample_fps : settings.fps;
  return {};
}

Status choose_of_file(const MediaSettings& settings, Overrides& overrides) {
  if (settings.sample_fps)
    return invalid("sample_fps is the rate of a list of frames; files have fps");
  if (const auto& frames = settings.frames) {
    overrides.frames = Overrides::SpanChoice{.nframes = frames->nframes,
                                             .min_frames = frames->min_frames,
                                             .max_frames = frames->max_frames,
                                             .fps = frames->fps,
                                             .start = frames->video_start,
                                             .end = frames->video_end};
    return {};
  }
  const auto& samples = settings.do_sample_frames;
  if (!settings.loader || (samples == true && settings.loader->keeps_all())) {
    if (samples == false)
      return not_implemented(
          "do_sample_frames false is not supported for a video file whose frames "
          "\"media_io_kwargs\" does not choose; send it, or a list of frames");
    overrides.fps = settings.fps;
    return {};
  }
  if (samples == true)
    return not_implemented(
        "do_sample_frames true would sample again the frames that \"media_io_kwargs\" chooses, "
        "which is not supported");
  if (settings.fps && !samples)
    return invalid(
        "fps and \"media_io_kwargs\" both choose frames; with do_sample_frames false, fps is the "
        "rate of the chosen ones");
  overrides.frames = uniform(*settings.loader);
  overrides.frame_rate = settings.fps;
  return {};
}

}  // namespace

Result<Overrides> overrides_of(const MediaSettings& part, const MediaSettings& request,
                               media::MediaKind kind, bool frame_list) {
  const MediaSettings settings = in_request(part, request);
  Overrides overrides{.kind = kind,
                      .min_pixels = settings.min_pixels,
                      .max_pixels = settings.max_pixels,
                      .total_pixels = settings.total_pixels,
                      .resized_height = settings.resized_height,
                      .resized_width = settings.resized_width,
                      .whole_sides = has_sizes(part)};
  if (kind == media::MediaKind::kImage) {
    if (part.total_pixels || part.frames || part.sample_fps)
      return invalid("an image does not accept settings of videos");
    return overrides;
  }
  VALORA_CHECK(frame_list ? choose_of_list(settings, overrides)
                          : choose_of_file(settings, overrides));
  return overrides;
}

}  // namespace valora::serving
