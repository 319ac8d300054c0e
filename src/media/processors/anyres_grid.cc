#include "media/processors/anyres_grid.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace valora::media {
namespace {

constexpr int kMaxPinpoints = 1024, kMaxResolution = 1 << 14;

// Python's int(round(x, 7)): a value just below a whole number becomes that number.
int whole_pixels(double x) {
  const double below = std::floor(x);
  return static_cast<int>(below + 1 - x <= 5e-8 ? below + 1 : below);
}

// Python's int(a // b) for floats.
int floor_division(double a, double b) {
  const double quotient = (a - std::fmod(a, b)) / b, below = std::floor(quotient);
  return static_cast<int>(quotient - below > 0.5 ? below + 1 : below);
}

}  // namespace

Result<std::vector<PixelSize>> parse_pinpoints(const Json& value) {
  const auto refuse = [] {
    return invalid(fmt::format("must be a list of 1 to {} pairs of height and width in 1 … {}",
                               kMaxPinpoints, kMaxResolution));
  };
  if (!value.is_array() || value.empty() || value.size() > kMaxPinpoints) return refuse();
  std::vector<PixelSize> sizes;
  for (const Json& pair : value) {
    if (!pair.is_array() || pair.size() != 2) return refuse();
    for (const Json& side : pair)
      if (!side.is_number_integer() || side < 1 || side > kMaxResolution) return refuse();
    sizes.push_back({pair[1].get<int>(), pair[0].get<int>()});
  }
  return sizes;
}

bool fits(const std::vector<PixelSize>& pinpoints, int tile) {
  return std::ranges::all_of(pinpoints, [&](const PixelSize& size) {
    return size.width % tile == 0 && size.height % tile == 0 &&
           (size.width / tile) * (size.height / tile) <= kMaxAnyresTiles;
  });
}

PixelSize best_resolution(PixelSize picture, const std::vector<PixelSize>& pinpoints) {
  const double width = picture.width, height = picture.height;
  const int64_t pixels = int64_t{picture.width} * picture.height;
  PixelSize best;
  int64_t most = 0, least = std::numeric_limits<int64_t>::max();
  for (const PixelSize& one : pinpoints) {
    const double scale = std::min(one.width / width, one.height / height);
    const auto kept_width = static_cast<int64_t>(width * scale),
               kept_height = static_cast<int64_t>(height * scale);
    const int64_t kept = std::min(kept_width * kept_height, pixels),
                  wasted = int64_t{one.width} * one.height - kept;
    if (kept > most || (kept == most && wasted < least)) best = one, most = kept, least = wasted;
  }
  return best;
}

PixelSize size_within(PixelSize picture, PixelSize resolution) {
  const double by_width = resolution.width / double(picture.width),
               by_height = resolution.height / double(picture.height);
  if (by_width < by_height)
    return {resolution.width,
            std::min(static_cast<int>(std::ceil(picture.height * by_width)), resolution.height)};
  return {std::min(static_cast<int>(std::ceil(picture.width * by_height)), resolution.width),
          resolution.height};
}

Result<UnpaddedTiles> unpadded_tiles(PixelSize picture, PixelSize resolution,
                                     const AnyresTiles& tiles) {
  int rows = resolution.height / tiles.tile * tiles.side,
      columns = resolution.width / tiles.tile * tiles.side;
  UnpaddedTiles made;
  if (double(picture.width) / picture.height > double(columns) / rows) {
    made.cut_rows = (rows - whole_pixels(picture.height * (double(columns) / picture.width))) / 2;
  } else {
    made.cut_columns =
        (columns - whole_pixels(picture.width * (double(rows) / picture.height))) / 2;
  }
  rows -= 2 * made.cut_rows;
  columns -= 2 * made.cut_columns;
  if (tiles.most > 0) {
    const double ratio =
        std::sqrt(double(rows) * columns / (double(tiles.most) * tiles.side * tiles.side));
    if (ratio > 1.1) {
      rows = floor_division(rows, ratio);
      columns = floor_division(columns, ratio);
      if (rows < 1 || columns < 1)
        return invalid(fmt::format("{} x {} pixels: the picture is too thin for the model",
                                   picture.width, picture.height));
    }
  }
  made.rows = rows;
  made.columns = columns;
  return made;
}

}  // namespace valora::media
