// A frame's brightness in a coarse grid, which tells whether anything in it has changed.
#pragma once

#include <vector>

#include "media/image/image.h"

namespace valora::streams {

struct LumaGrid {
  static constexpr int kColumns = 64, kRows = 36;

  int columns = 0, rows = 0;
  std::vector<float> cells;  // rows * columns means of luma (BT.601), 0 to 255
};

// The means over 64 × 36 cells of equal area; a side with fewer pixels has as many cells as pixels.
LumaGrid luma_grid(const media::Image& image);
// The largest absolute difference of two cells in the same place. Infinite if the sizes differ.
double largest_difference(const LumaGrid& a, const LumaGrid& b);

}  // namespace valora::streams
