#include "api/media_settings.h"

namespace valora {
namespace {

template <typename T>
void fill(std::optional<T>& value, const std::optional<T>& other) {
  if (!value) value = other;
}

void fill_sizes(MediaSettings& settings, const MediaSettings& others) {
  fill(settings.min_pixels, others.min_pixels);
  fill(settings.max_pixels, others.max_pixels);
  fill(settings.total_pixels, others.total_pixels);
  fill(settings.resized_height, others.resized_height);
  fill(settings.resized_width, others.resized_width);
}

}  // namespace

MediaSettings with_defaults(MediaSettings request, const MediaSettings& defaults) {
  fill_sizes(request, defaults);
  const bool processor_samples = request.fps && request.do_sample_frames != false;
  if (processor_samples || request.do_sample_frames == true) {
    // A default loader can only keep all frames here, from which the processor samples, so dropping
    // it changes nothing.
    if (request.do_sample_frames == true) fill(request.fps, defaults.fps);
    return request;
  }
  if (!request.loader) {
    fill(request.fps, defaults.fps);
    request.loader = defaults.loader;
    fill(request.do_sample_frames, defaults.do_sample_frames);
  }
  return request;
}

MediaSettings in_request(MediaSettings part, const MediaSettings& request) {
  fill_sizes(part, request);
  if (part.frames) return part;
  fill(part.fps, request.fps);
  fill(part.do_sample_frames, request.do_sample_frames);
  fill(part.loader, request.loader);
  return part;
}

}  // namespace valora
