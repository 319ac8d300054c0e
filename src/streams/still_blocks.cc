#include "streams/still_blocks.h"

#include <algorithm>
#include <cstdlib>

namespace valora::streams {
namespace {

constexpr int kChannels = 3;

size_t offset(const media::Image& image, int x, int y) {
  return (static_cast<size_t>(y) * image.width + x) * kChannels;
}

// The largest of the colours' differences of the means of two pictures' cells, which end at the
// pictures' edges. The pictures have one size.
double difference(const media::Image& a, const media::Image& b, int left, int top) {
  const int right = std::min(left + StillBlocks::kCell, a.width),
            bottom = std::min(top + StillBlocks::kCell, a.height);
  int sums[kChannels] = {};
  for (int y = top; y < bottom; ++y) {
    size_t at = offset(a, left, y);
    for (int x = left; x < right; ++x)
      for (int& sum : sums) {
        sum += a.rgb[at] - b.rgb[at];
        ++at;
      }
  }
  int largest = 0;
  for (const int sum : sums) largest = std::max(largest, std::abs(sum));
  return double(largest) / double((right - left) * (bottom - top));
}

}  // namespace

bool StillBlocks::is_still(const media::Image& image, int left, int top) const {
  for (int y = top; y < std::min(top + kBlock, image.height); y += kCell)
    for (int x = left; x < std::min(left + kBlock, image.width); x += kCell)
      if (difference(image, before_, x, y) > rule_.threshold) return false;
  return true;
}

BlockCounts StillBlocks::apply(media::Image& image, double time) {
  const bool same_size = image.width == before_.width && image.height == before_.height;
  const bool whole = !same_size || time - whole_at_ >= rule_.at_most;
  if (whole) whole_at_ = time;
  BlockCounts counts;
  for (int top = 0; top < image.height; top += kBlock)
    for (int left = 0; left < image.width; left += kBlock) {
      ++counts.all;
      if (whole || !is_still(image, left, top)) continue;
      ++counts.still;
      const size_t values = static_cast<size_t>(std::min(kBlock, image.width - left)) * kChannels;
      for (int y = top; y < std::min(top + kBlock, image.height); ++y)
        std::copy_n(before_.rgb.begin() + static_cast<int64_t>(offset(image, left, y)), values,
                    image.rgb.begin() + static_cast<int64_t>(offset(image, left, y)));
    }
  before_ = image;
  return counts;
}

}  // namespace valora::streams
