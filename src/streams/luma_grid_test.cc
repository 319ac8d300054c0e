#include "streams/luma_grid.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace valora::streams {
namespace {

media::Image filled(int width, int height, uint8_t red, uint8_t green, uint8_t blue) {
  media::Image image{width, height, {}};
  for (int i = 0; i < width * height; ++i) image.rgb.insert(image.rgb.end(), {red, green, blue});
  return image;
}

void paint(media::Image& image, int x0, int y0, int side, uint8_t value) {
  for (int y = y0; y < y0 + side; ++y)
    for (int x = x0; x < x0 + side; ++x)
      for (int c = 0; c < 3; ++c)
        image.rgb[static_cast<size_t>((y * image.width + x) * 3 + c)] = value;
}

// Every pixel is in one cell, and cells hold its mean.
TEST(LumaGrid, HasTheMeanLumaOfEachCell) {
  for (const auto& [width, height] :
       {std::pair{640, 360}, std::pair{641, 367}, std::pair{100, 37}, std::pair{65, 71}}) {
    SCOPED_TRACE(width);
    const LumaGrid grid = luma_grid(filled(width, height, 10, 200, 30));
    ASSERT_EQ(grid.cells.size(), 64u * 36);
    for (const float cell : grid.cells)
      ASSERT_NEAR(cell, 0.299 * 10 + 0.587 * 200 + 0.114 * 30, 1e-4);
  }
  media::Image image = filled(640, 360, 0, 0, 0);
  paint(image, 30, 20, 10, 100);  // cell (3, 2)
  paint(image, 45, 20, 5, 100);   // a quarter of cell (4, 2)
  const LumaGrid grid = luma_grid(image);
  double sum = 0;
  for (const float cell : grid.cells) sum += cell;
  EXPECT_NEAR(grid.cells[2 * 64 + 3], 100, 1e-4);
  EXPECT_NEAR(grid.cells[2 * 64 + 4], 25, 1e-4);
  EXPECT_NEAR(sum, 125, 1e-3);
}

TEST(LumaGrid, OfASmallPictureHasItsPixels) {
  media::Image image = filled(3, 2, 0, 0, 0);
  paint(image, 2, 1, 1, 90);
  const LumaGrid grid = luma_grid(image);
  EXPECT_EQ(grid.columns, 3);
  EXPECT_EQ(grid.rows, 2);
  ASSERT_EQ(grid.cells.size(), 6u);
  EXPECT_NEAR(grid.cells[5], 90, 1e-4);
  EXPECT_EQ(grid.cells[4], 0);
}

TEST(LumaGrid, ASmallThingThatMovesCountsWhereNoiseDoesNot) {
  const media::Image plain = filled(640, 360, 120, 120, 120);
  std::mt19937 bits(1);
  const auto noisy = [&](const media::Image& image) {
    media::Image out = image;
    for (uint8_t& value : out.rgb) value = static_cast<uint8_t>(value + bits() % 25 - 12);
    return luma_grid(out);
  };
  const double noise = largest_difference(noisy(plain), noisy(plain));
  media::Image before = plain, after = plain;
  paint(before, 301, 103, 12, 180);
  paint(after, 313, 103, 12, 180);
  const double moved = largest_difference(noisy(before), noisy(after));
  EXPECT_GT(noise, 0);
  EXPECT_LT(noise, 5);
  EXPECT_GT(moved, 30);
}

TEST(LumaGrid, OfAnotherSizeDiffersWholly) {
  EXPECT_TRUE(std::isinf(
      largest_difference(luma_grid(filled(3, 2, 0, 0, 0)), luma_grid(filled(2, 3, 0, 0, 0)))));
}

}  // namespace
}  // namespace valora::streams
