#include "streams/luma_grid.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace valora::streams {
namespace {

constexpr int kRed = 299, kGreen = 587, kBlue = 114;  // in thousandths

}  // namespace

// Means over areas, unlike PIL's filters, whose weights reach into the neighbours: a small thing
// that moves then changes one cell fully instead of several a little.
LumaGrid luma_grid(const media::Image& image) {
  LumaGrid grid{
      std::min(image.width, LumaGrid::kColumns), std::min(image.height, LumaGrid::kRows), {}};
  const auto columns = static_cast<size_t>(grid.columns), rows = static_cast<size_t>(grid.rows);
  const auto width = static_cast<size_t>(image.width), height = static_cast<size_t>(image.height);
  std::vector<int64_t> sums(rows * columns);
  const uint8_t* pixel = image.rgb.data();
  for (size_t y = 0; y < height; ++y) {
    int64_t* const row = sums.data() + y * rows / height * columns;
    for (size_t column = 0, x = 0; column < columns; ++column)
      for (const size_t end = ((column + 1) * width + columns - 1) / columns; x < end;
           ++x, pixel += 3)
        row[column] += kRed * pixel[0] + kGreen * pixel[1] + kBlue * pixel[2];
  }
  // The first pixel of cell i, as above.
  const auto begin = [](size_t i, size_t pixels, size_t cells) {
    return (i * pixels + cells - 1) / cells;
  };
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column) {
      const size_t area = (begin(row + 1, height, rows) - begin(row, height, rows)) *
                          (begin(column + 1, width, columns) - begin(column, width, columns));
      grid.cells.push_back(static_cast<float>(static_cast<double>(sums[row * columns + column]) /
                                              (1000.0 * static_cast<double>(area))));
    }
  return grid;
}

double largest_difference(const LumaGrid& a, const LumaGrid& b) {
  if (a.columns != b.columns || a.rows != b.rows) return std::numeric_limits<double>::infinity();
  float largest = 0;
  for (size_t i = 0; i < a.cells.size(); ++i)
    largest = std::max(largest, std::abs(a.cells[i] - b.cells[i]));
  return largest;
}

}  // namespace valora::streams
