#include "streams/still_blocks.h"

#include <gtest/gtest.h>

#include <random>

namespace valora::streams {
namespace {

constexpr int kNoisyWidth = 40, kNoisyHeight = 36;  // 3 x 3 blocks, those at the edges smaller
constexpr int64_t kNoisyBlocks = 9;

// Of noise around a grey.
media::Image noisy_picture(uint32_t seed, int noise = 0, int grey = 100) {
  std::mt19937 random(seed);
  media::Image image{kNoisyWidth, kNoisyHeight,
                     std::vector<uint8_t>(size_t{kNoisyWidth} * kNoisyHeight * 3)};
  for (uint8_t& value : image.rgb)
    value = static_cast<uint8_t>(grey + (noise == 0 ? 0 : int(random() % (2 * noise + 1)) - noise));
  return image;
}

void paint(media::Image& image, int left, int top, int side, uint8_t value, int channel = 0) {
  for (int y = top; y < top + side; ++y)
    for (int x = left; x < left + side; ++x)
      image.rgb[static_cast<size_t>((y * kNoisyWidth + x) * 3 + channel)] = value;
}

TEST(StillBlocks, NoiseIsTakenFromThePictureBefore) {
  StillBlocks blocks({.threshold = 8, .at_most = 60});
  const media::Image first = noisy_picture(1, 6);
  media::Image image = first;
  EXPECT_EQ(blocks.apply(image, 0).still, 0) << "there is none before";
  EXPECT_EQ(image.rgb, first.rgb);
  for (uint32_t i = 2; i < 6; ++i) {
    image = noisy_picture(i, 6);
    ASSERT_NE(image.rgb, first.rgb);
    const BlockCounts counts = blocks.apply(image, i);
    EXPECT_EQ(counts.all, kNoisyBlocks);
    EXPECT_EQ(counts.still, kNoisyBlocks);
    EXPECT_EQ(image.rgb, first.rgb);
  }
}

// Also at the edges, and in one colour alone.
TEST(StillBlocks, ASmallChangeReplacesItsBlockAlone) {
  for (const auto& [left, top, channel] :
       {std::tuple{20, 4, 0}, std::tuple{36, 32, 1}, std::tuple{0, 16, 2}}) {
    StillBlocks blocks({.threshold = 8, .at_most = 60});
    media::Image first = noisy_picture(1, 6);
    blocks.apply(first, 0);
    media::Image image = noisy_picture(2, 6);
    paint(image, left, top, 4, 140, channel);
    const media::Image second = image;
    EXPECT_EQ(blocks.apply(image, 1).still, kNoisyBlocks - 1);
    for (int y = 0; y < kNoisyHeight; ++y)
      for (int x = 0; x < kNoisyWidth; ++x) {
        const bool in_block = x / 16 == left / 16 && y / 16 == top / 16;
        const auto at = static_cast<size_t>((y * kNoisyWidth + x) * 3);
        ASSERT_EQ(image.rgb[at], (in_block ? second : first).rgb[at]) << x << ", " << y;
      }
  }
}

TEST(StillBlocks, SmallChangesAddUp) {
  StillBlocks blocks({.threshold = 8, .at_most = 1000});
  int64_t renewed = 0;
  media::Image image;
  for (int grey = 100; grey <= 118; ++grey) {
    image = noisy_picture(1, 0, grey);
    const BlockCounts counts = blocks.apply(image, grey);
    renewed += counts.all - counts.still;
    ASSERT_LE(std::abs(image.rgb[0] - grey), 8);
  }
  EXPECT_EQ(renewed, 3 * kNoisyBlocks) << "at 100, 109 and 118";
}

TEST(StillBlocks, AWholePictureComesInTime) {
  StillBlocks blocks({.threshold = 255, .at_most = 10});
  std::vector<int64_t> still;
  for (const double time : {0.0, 5.0, 9.9, 10.0, 19.0, 21.0}) {
    media::Image image = noisy_picture(static_cast<uint32_t>(time), 20);
    still.push_back(blocks.apply(image, time).still);
  }
  EXPECT_EQ(still, std::vector<int64_t>({0, kNoisyBlocks, kNoisyBlocks, 0, kNoisyBlocks, 0}));
}

TEST(StillBlocks, AnotherSizeIsWhole) {
  StillBlocks blocks({.threshold = 255, .at_most = 1000});
  media::Image image = noisy_picture(1);
  blocks.apply(image, 0);
  media::Image other{20, 20, std::vector<uint8_t>(20 * 20 * 3, 7)};
  EXPECT_EQ(blocks.apply(other, 1).still, 0);
  EXPECT_EQ(other.rgb[0], 7);
}

}  // namespace
}  // namespace valora::streams
