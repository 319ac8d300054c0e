#include "media/smart_resize.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace valora::media {

Result<PixelSize> smart_resize(int width, int height, int factor, PixelBounds bounds, int least) {
  if (width <= 0 || height <= 0) return invalid("the picture has no pixels");
  const double ratio = double(std::max(width, height)) / std::min(width, height);
  if (ratio > 200)
    return invalid(
        fmt::format("the aspect ratio of {} x {} pixels is {:.1f}, over the limit of 200", width,
                    height, ratio));
  // nearbyint rounds half to even, as Python's round().
  double h = std::max<double>(least, std::nearbyint(double(height) / factor) * factor);
  double w = std::max<double>(least, std::nearbyint(double(width) / factor) * factor);
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
    return invalid(fmt::format("the picture of {} x {} pixels is too small", width, height));
  return PixelSize{static_cast<int>(w), static_cast<int>(h)};
}

}  // namespace valora::media
