#include "media/frame_sampling.h"

#include <gtest/gtest.h>

namespace valora::media {
namespace {

TEST(FrameSampling, ANumberThatNoVideoHasTakesNoMemory) {
  const VideoInfo video{.frames = INT64_MAX, .fps = 30, .width = 2, .height = 2};
  for (const int64_t many : {int64_t{1} << 17, int64_t{1} << 40, INT64_MAX}) {
    EXPECT_FALSE(sample_frames(video, {.num_frames = many, .temporal_patch = 1}).ok()) << many;
    EXPECT_FALSE(sample_frames(video, {.fps = 1e300, .max_frames = many}).ok()) << many;
  }
}

TEST(FrameSampling, SpreadsOverAnyNumberOfFrames) {
  const VideoInfo video{.frames = INT64_MAX, .fps = 30, .width = 2, .height = 2};
  const auto indices = sample_frames(video, {.num_frames = 4});
  ASSERT_TRUE(indices.ok()) << indices.error().message;
  ASSERT_EQ(indices->size(), 4u);
  EXPECT_EQ(indices->front(), 0);
  EXPECT_EQ(indices->back(), INT64_MAX / 4 * 3 + 2);
}

}  // namespace
}  // namespace valora::media
