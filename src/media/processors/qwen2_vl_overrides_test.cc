#include "media/processors/qwen2_vl_overrides.h"

#include <gtest/gtest.h>

#include <cmath>

#include "media/testing/pictures.h"

namespace valora::media {
namespace {

using testing::make_picture;
using Overrides = ProcessorOverrides;
using SpanChoice = Overrides::SpanChoice;
constexpr auto kImage = MediaKind::kImage, kVideo = MediaKind::kVideo;

// Patches of 2 x 2 pixels, merged by 2 x 2: sizes are multiples of 4.
std::shared_ptr<const Processor> make_small(bool resizes = true) {
  Json image = {{"patch_size", 2},      {"merge_size", 2},      {"temporal_patch_size", 2},
                {"min_pixels", 16},     {"max_pixels", 400},    {"do_rescale", false},
                {"do_resize", resizes}, {"do_normalize", false}};
  Json video = image;
  video["max_pixels"] = 100;
  return *make_qwen2_vl_processor(image, video, {2, 2, 2});
}

// Tokens of a 20 x 20 picture, or of a video with `frames` such frames; -1 if refused.
int64_t tokens_with(const Overrides& overrides, int64_t frames = 2) {
  const auto processor = make_small()->with(overrides);
  if (!processor.ok()) return -1;
  const auto tokens = overrides.kind == kImage ? (*processor)->image_tokens(20, 20)
                                               : (*processor)->video_tokens(20, 20, frames);
  return tokens.ok() ? *tokens : -1;
}

TEST(ProcessorOverrides, PixelBoundsStayWithinModels) {
  EXPECT_EQ(tokens_with({.kind = kImage}), 25);
  EXPECT_LE(tokens_with({.kind = kImage, .max_pixels = 100}), 6);
  EXPECT_GT(*(*make_small()->with({.kind = kImage, .min_pixels = 300}))->image_tokens(4, 4), 1);
  EXPECT_EQ(tokens_with({.kind = kImage, .max_pixels = 400}), 25);
  EXPECT_EQ(tokens_with({.kind = kImage, .max_pixels = 8}), 1) << "the minimum is lowered";
  for (const Overrides& wrong :
       {Overrides{.kind = kVideo, .max_pixels = 400}, Overrides{.kind = kImage, .max_pixels = 401},
        Overrides{.kind = kImage, .max_pixels = 0}, Overrides{.kind = kImage, .min_pixels = 401},
        Overrides{.kind = kImage, .min_pixels = 101, .max_pixels = 100},
        Overrides{.kind = kVideo, .total_pixels = 0}})
    EXPECT_EQ(tokens_with(wrong), -1);
  EXPECT_FALSE(make_small(false)->with({.kind = kImage, .max_pixels = 16}).ok()) << "no resizing";
  EXPECT_TRUE(make_small(false)->with({.kind = kVideo, .fps = 1.0}).ok());
}

TEST(ProcessorOverrides, FixedSizeRoundsToMergeBlocks) {
  const auto size = [](int64_t height, int64_t width) {
    return tokens_with({.kind = kImage, .resized_height = height, .resized_width = width});
  };
  EXPECT_EQ(size(16, 12), 12);
  EXPECT_EQ(size(15, 13), 12);
  EXPECT_EQ(size(1, 30), 8) << "no side is less than one block";
  EXPECT_EQ(size(2, 2), 4) << "four blocks at least";
  EXPECT_EQ(size(24, 24), -1) << "above the model's";
  EXPECT_EQ(size(0, 8), -1);
  EXPECT_EQ(size(1, 1 << 20), -1);
  EXPECT_EQ(tokens_with({.kind = kImage, .resized_height = 8}), -1) << "both or none";
  EXPECT_EQ(tokens_with({.kind = kVideo, .resized_height = 8, .resized_width = 8}, 4), 8);
}

// qwen_vl_utils: max(total / frames · 2, int(1.05 · min)), at most max_pixels.
TEST(ProcessorOverrides, FramesShareTotalPixels) {
  const auto tokens = [](int64_t total, int64_t frames, std::optional<int64_t> max = {}) {
    return tokens_with({.kind = kVideo, .max_pixels = max, .total_pixels = total}, frames);
  };
  EXPECT_EQ(tokens(1000, 2), 4) << "the bound of each frame, 100 pixels";
  EXPECT_EQ(tokens(128, 4), 2 * 4) << "64 for each";
  EXPECT_EQ(tokens(126, 4), 2 * 1) << "63 for each";
  EXPECT_EQ(tokens(128, 3), 2 * 4) << "the last group is filled";
  EXPECT_EQ(tokens(1, 4), 2 * 1) << "not less than the minimum";
  EXPECT_EQ(tokens(128, 4, 20), 2 * 1);
}

TEST(ProcessorOverrides, ThinPicturesRoundAsInQwenVlUtils) {
  const auto model = make_small(), own = *model->with({.kind = kImage, .min_pixels = 8}),
             part = *model->with({.kind = kImage, .min_pixels = 8, .whole_sides = true});
  EXPECT_EQ(*own->image_tokens(100, 1), 8) << "a side rounds to nothing: enlarged to 8 pixels";
  EXPECT_EQ(*part->image_tokens(100, 1), 25);
}

TEST(ProcessorOverrides, FrameRuleReplacesModelSampling) {
  const VideoInfo clip{.frames = 100, .fps = 10, .width = 8, .height = 8};
  const auto frames = [&](const Overrides& overrides) -> std::vector<int64_t> {
    const auto processor = make_small()->with(overrides);
    if (!processor.ok()) return {};
    const auto indices = (*processor)->frame_sampler()(clip);
    return indices.ok() ? *indices : std::vector<int64_t>{};
  };
  EXPECT_EQ(frames({.kind = kVideo}).size(), 20u);
  EXPECT_EQ(frames({.kind = kVideo, .fps = 1.0}).size(), 10u);
  EXPECT_EQ(frames({.kind = kVideo, .frames = SpanChoice{.nframes = 2}}),
            (std::vector<int64_t>{0, 99}));
  EXPECT_EQ(frames({.kind = kVideo, .frames = SpanChoice{.start = 9.0}}).size(), 4u)
      << "the model's rate and minimum";
  EXPECT_EQ(frames({.kind = kVideo, .frames = UniformSampling{3, {}}}),
            (std::vector<int64_t>{0, 49, 99}));
  for (const double wrong : {0.0, -1.0, 241.0, std::nan("")}) {
    EXPECT_TRUE(frames({.kind = kVideo, .fps = wrong}).empty()) << wrong;
    EXPECT_TRUE(frames({.kind = kVideo, .frame_rate = wrong}).empty()) << wrong;
    EXPECT_TRUE(frames({.kind = kVideo, .frames = SpanChoice{.fps = wrong}}).empty()) << wrong;
    EXPECT_TRUE(frames({.kind = kVideo, .frames = UniformSampling{{}, wrong}}).empty()) << wrong;
  }
  EXPECT_TRUE(frames({.kind = kVideo, .frames = SpanChoice{.nframes = 4, .fps = 1.0}}).empty());
  EXPECT_TRUE(frames({.kind = kVideo, .frames = SpanChoice{.start = INFINITY}}).empty());
}

TEST(ProcessorOverrides, PositionsFollowTheRateOfTheFrames) {
  const VideoInfo clip{.frames = 100, .fps = 10, .width = 8, .height = 8};
  const auto rate = [&](const Overrides& overrides) {
    return (*make_small()->with(overrides))->sampled_fps(clip, 4);
  };
  EXPECT_DOUBLE_EQ(rate({.kind = kVideo}), 0.4);
  EXPECT_DOUBLE_EQ(rate({.kind = kVideo, .frames = SpanChoice{.start = 2, .end = 3.9}}), 2.0);
  EXPECT_DOUBLE_EQ(rate({.kind = kVideo, .frames = UniformSampling{4, {}}, .frame_rate = 5}), 5.0);
  const std::vector<Image> list(2, make_picture(8, 8));
  const auto declared = *make_small()->with({.kind = kVideo, .frame_rate = 4});
  EXPECT_DOUBLE_EQ(declared->video(list, 0)->seconds_per_grid, 0.5);
  EXPECT_DOUBLE_EQ(make_small()->video(list, 0)->seconds_per_grid, 1.0);
}

TEST(ProcessorOverrides, EveryOverrideChangesDigest) {
  std::vector<Digest> digests{make_small()->settings_digest()};
  for (const Overrides& overrides :
       {Overrides{.kind = kVideo, .min_pixels = 20}, Overrides{.kind = kVideo, .max_pixels = 90},
        Overrides{.kind = kVideo, .total_pixels = 90},
        Overrides{.kind = kVideo, .total_pixels = 90, .whole_sides = true},
        Overrides{.kind = kVideo, .resized_height = 8, .resized_width = 12},
        Overrides{.kind = kVideo, .resized_height = 12, .resized_width = 8},
        Overrides{.kind = kVideo, .fps = 1.0}, Overrides{.kind = kVideo, .frame_rate = 1.0},
        Overrides{.kind = kVideo, .frames = SpanChoice{}},
        Overrides{.kind = kVideo, .frames = SpanChoice{.nframes = 4}},
        Overrides{.kind = kVideo, .frames = SpanChoice{.min_frames = 3}},
        Overrides{.kind = kVideo, .frames = SpanChoice{.max_frames = 30}},
        Overrides{.kind = kVideo, .frames = SpanChoice{.fps = 1.0}},
        Overrides{.kind = kVideo, .frames = SpanChoice{.start = 0.0}},
        Overrides{.kind = kVideo, .frames = SpanChoice{.end = 0.0}},
        Overrides{.kind = kVideo, .frames = UniformSampling{}},
        Overrides{.kind = kVideo, .frames = UniformSampling{4, {}}},
        Overrides{.kind = kVideo, .frames = UniformSampling{{}, 4.0}}})
    digests.push_back((*make_small()->with(overrides))->settings_digest());
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::adjacent_find(digests.begin(), digests.end()), digests.end());
}

}  // namespace
}  // namespace valora::media
