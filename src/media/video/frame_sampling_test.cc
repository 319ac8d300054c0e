#include "media/video/frame_sampling.h"

#include <gtest/gtest.h>

#include <vector>

namespace valora::media {
namespace {

TEST(FrameSampling, HugeFrameCountDoesNotAllocate) {
  const VideoInfo video{.frames = INT64_MAX, .fps = 30, .width = 2, .height = 2};
  for (const int64_t many : {int64_t{1} << 17, int64_t{1} << 40, INT64_MAX}) {
    for (const FrameRule& rule : std::vector<FrameRule>{
             FrameSampling{.num_frames = many, .temporal_patch = 1},
             FrameSampling{.fps = 1e300, .max_frames = many}, SpanSampling{.nframes = many},
             SpanSampling{.fps = 1e300, .max_frames = many, .end = 1e300},
             UniformSampling{.num_frames = many, .fps = {}}, UniformSampling{}})
      EXPECT_FALSE(sample_frames(video, rule).ok()) << many << ", rule " << rule.index();
  }
}

TEST(FrameSampling, SpreadsOverAnyNumberOfFrames) {
  const VideoInfo video{.frames = INT64_MAX, .fps = 30, .width = 2, .height = 2};
  const auto indices = sample_frames(video, FrameSampling{.num_frames = 4});
  ASSERT_TRUE(indices.ok()) << indices.error().message;
  ASSERT_EQ(indices->size(), 4u);
  EXPECT_EQ(indices->front(), 0);
  EXPECT_EQ(indices->back(), INT64_MAX / 4 * 3 + 2);
}

using Indices = std::vector<int64_t>;

Indices indices(int64_t frames, double fps, const FrameRule& rule) {
  const auto result = sample_frames({.frames = frames, .fps = fps, .width = 2, .height = 2}, rule);
  return result.ok() ? *result : Indices{};
}

// Expected values from qwen_vl_utils 0.0.14.
TEST(SpanSampling, SpreadsOverBothEnds) {
  EXPECT_EQ(indices(60, 20, SpanSampling{}), (Indices{0, 12, 24, 35, 47, 59}));
  EXPECT_EQ(indices(10, 100, SpanSampling{}), (Indices{0, 3, 6, 9})) << "at least four";
  EXPECT_EQ(indices(10, 10, SpanSampling{.nframes = 5}), (Indices{0, 3, 6, 9})) << "2.5 is even";
  EXPECT_EQ(indices(10, 10, SpanSampling{.nframes = 7}).size(), 8u) << "3.5 is not";
  EXPECT_EQ(indices(10, 0, SpanSampling{.nframes = 2}), (Indices{0, 9})) << "needs no rate";
  EXPECT_EQ(indices(100, 10, SpanSampling{.fps = 1, .min_frames = 11}).size(), 12u);
  EXPECT_EQ(indices(100, 10, SpanSampling{.fps = 1, .max_frames = 9}).size(), 8u);
  for (const SpanSampling& wrong :
       {SpanSampling{.nframes = 1}, SpanSampling{.nframes = 12}, SpanSampling{.max_frames = 1}})
    EXPECT_EQ(indices(10, 10, wrong), Indices{});
  EXPECT_EQ(indices(1, 10, SpanSampling{}), Indices{}) << "no pair of frames";
  EXPECT_EQ(indices(10, 0, SpanSampling{}), Indices{}) << "no frame rate";
}

TEST(SpanSampling, SamplesRequestedSpan) {
  const auto part = [](std::optional<double> start, std::optional<double> end) {
    return indices(100, 10, SpanSampling{.nframes = 2, .start = start, .end = end});
  };
  EXPECT_EQ(part(2.0, 4.0), (Indices{20, 40}));
  EXPECT_EQ(part(2.01, 3.99), (Indices{21, 39}));
  EXPECT_EQ(part({}, 4.0), (Indices{0, 40}));
  EXPECT_EQ(part(2.0, {}), (Indices{20, 99}));
  EXPECT_EQ(part(-5.0, 1000.0), (Indices{0, 99}));
  EXPECT_EQ(part(4.0, 4.05), Indices{}) << "one frame";
  EXPECT_EQ(part(50.0, {}), Indices{}) << "after the end";
  const VideoInfo video{.frames = 100, .fps = 10, .width = 2, .height = 2};
  EXPECT_DOUBLE_EQ(sampled_rate(video, 4, SpanSampling{.start = 2, .end = 3.9}), 2.0);
  EXPECT_DOUBLE_EQ(sampled_rate(video, 4, SpanSampling{}), 0.4);
}

TEST(UniformSampling, UsesLowerOfCountAndRate) {
  const auto kept = [](std::optional<int64_t> most, std::optional<double> fps) {
    return indices(100, 10, UniformSampling{most, fps});
  };
  EXPECT_EQ(kept(4, {}), (Indices{0, 33, 66, 99}));
  EXPECT_EQ(kept(4, 0.3), (Indices{0, 49, 99}));
  EXPECT_EQ(kept(1, {}), (Indices{0}));
  EXPECT_EQ(kept(4, 0.01), (Indices{0})) << "at least one";
  EXPECT_EQ(kept({}, {}).size(), 100u);
  EXPECT_EQ(kept(1000, 60).size(), 100u);
  EXPECT_EQ(indices(10, 0, UniformSampling{4, 1.0}), Indices{}) << "no frame rate";
  EXPECT_EQ(indices(10, 0, UniformSampling{4, {}}).size(), 4u);
}

}  // namespace
}  // namespace valora::media
