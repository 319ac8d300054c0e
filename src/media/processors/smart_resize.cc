#include "media/processors/smart_resize.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace valora::media {
namespace {

Status check_shape(int width, int height) {
  if (width <= 0 || height <= 0) return invalid("the picture has no pixels");
  const double ratio = double(std::max(width, height)) / std::min(width, height);
  if (ratio <= 200) return {};
  return invalid(fmt::format("the aspect ratio of {} x {} pixels is {:.1f}, over the limit of 200",
                             width, height, ratio));
}

// nearbyint rounds half to even, as Python's round().
double to_multiple(double value, int factor) { return std::nearbyint(value / factor) * factor; }

}  // namespace

Result<PixelSize> smart_resize(int width, int height, int factor, PixelBounds bounds, int least) {
  VALORA_CHECK(check_shape(width, height));
  double h = std::max<double>(least, to_multiple(height, factor));
  double w = std::max<double>(least, to_multiple(width, factor));
  const double area = double(height) * width;
  if (h * w > bounds.max) {
    const double beta = std::sqrt(area / bounds.max);
    h = std::max<double>(factor, std::floor(height / beta / factor) * factor);
    w = std::max<double>(factor, std::floor(width / beta / factor) * factor);
  } else if (h * w < bounds.min) {
    const double beta = std::sqrt(bounds.min / area);
    h = std::ceil(height * beta / factor) * factor;
    w = std::ceil(width * beta / factor) * factor;
  }
  if (h < 1 || w < 1)
    return invalid(fmt::format("the {} x {} picture is too small", width, height));
  return PixelSize{static_cast<int>(w), static_cast<int>(h)};
}

Result<PixelSize> smart_resize_video(int width, int height, int64_t frames, int temporal_patch,
                                     int factor, PixelBounds bounds) {
  VALORA_CHECK(check_shape(width, height));
  if (frames < temporal_patch)
    return invalid(fmt::format("the model reads {} frames at a time, but the video has only {}",
                               temporal_patch, frames));
  if (width < factor || height < factor) {
    const double scale = std::max(double(factor) / height, double(factor) / width);
    height = static_cast<int>(height * scale);
    width = static_cast<int>(width * scale);
    VALORA_CHECK(check_shape(width, height));
  }
  const double whole = to_multiple(double(frames), temporal_patch),
               volume = double(frames) * height * width;
  double h = to_multiple(height, factor), w = to_multiple(width, factor);
  if (whole * h * w > bounds.max) {
    const double beta = std::sqrt(volume / bounds.max);
    h = std::max<double>(factor, std::floor(height / beta / factor) * factor);
    w = std::max<double>(factor, std::floor(width / beta / factor) * factor);
  } else if (whole * h * w < bounds.min) {
    const double beta = std::sqrt(bounds.min / volume);
    h = std::ceil(height * beta / factor) * factor;
    w = std::ceil(width * beta / factor) * factor;
  }
  if (h < 1 || w < 1)
    return invalid(fmt::format("the {} x {} frames are too small", width, height));
  return PixelSize{static_cast<int>(w), static_cast<int>(h)};
}

}  // namespace valora::media
