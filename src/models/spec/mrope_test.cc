#include "models/spec/positions.h"

#include <gtest/gtest.h>

namespace valora::models {
namespace {

ModelSpec merged_by_two(double time_positions_per_second) {
  ModelSpec spec;
  spec.visual_merge = 2;
  spec.time_positions_per_second = time_positions_per_second;
  return spec;
}

std::shared_ptr<media::VisualInput> visual(media::MediaKind kind, int t, int h, int w) {
  auto input = std::make_shared<media::VisualInput>();
  input->kind = kind;
  input->grid_t = t, input->grid_h = h, input->grid_w = w;
  return input;
}

TEST(MropePositions, TextAfterImageContinuesAtLargestSide) {
  const auto image = visual(media::MediaKind::kImage, 1, 4, 6);  // 2 × 3 after merging
  const std::vector<VisualSpan> spans{{2, 6, image}};
  const Positions positions = mrope_positions(merged_by_two(0), 10, spans);
  EXPECT_EQ(positions.prompt, (std::vector<int32_t>{0, 1, 2, 2, 2, 2, 2, 2, 5, 6, 0, 1, 2, 2, 2,
                                                    3, 3, 3, 5, 6, 0, 1, 2, 3, 4, 2, 3, 4, 5, 6}));
  EXPECT_EQ(positions.delta, -3);
}

TEST(MropePositions, TextAfterVideoContinuesAtLargestPosition) {
  const auto video = visual(media::MediaKind::kVideo, 3, 2, 2);
  const std::vector<VisualSpan> spans{{1, 3, video}};
  const Positions positions = mrope_positions(merged_by_two(0), 6, spans);
  EXPECT_EQ(positions.prompt,
            (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 0, 1, 1, 1, 4, 5, 0, 1, 1, 1, 4, 5}));
  EXPECT_EQ(positions.delta, 0);
}

TEST(MropePositions, FramesSeparatedByTextSpreadIndividually) {
  const auto video = visual(media::MediaKind::kVideo, 2, 2, 4);  // two frames of 1 × 2 tokens
  const std::vector<VisualSpan> spans{{1, 2, video}, {4, 2, video, 2}};
  const Positions positions = mrope_positions(merged_by_two(0), 7, spans);
  EXPECT_EQ(positions.prompt, (std::vector<int32_t>{0, 1, 1, 3, 4, 4, 6, 0, 1, 1, 3, 4, 4, 6,  //
                                                    0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(positions.delta, 0);
}

TEST(MropePositions, WholeSecondsAreNotRoundedDown) {
  const auto video = visual(media::MediaKind::kVideo, 16, 2, 2);
  video->seconds_per_grid = 31.0 / 30;  // the last patch starts after 15.5 seconds
  const std::vector<VisualSpan> spans{{0, 16, video}};
  const Positions positions = mrope_positions(merged_by_two(4), 17, spans);
  EXPECT_EQ(positions.prompt[15], 62);
  for (int axis : {0, 1, 2}) EXPECT_EQ(positions.prompt[axis * 17 + 16], 63);
  EXPECT_EQ(positions.delta, 64 - 17);
}

}  // namespace
}  // namespace valora::models
