// Expected values from Qwen3VLVideoProcessor and Qwen3VLProcessor in transformers 5.24.
#include <gtest/gtest.h>

#include "media/processors/processor.h"
#include "media/processors/qwen2_vl_settings.h"
#include "media/processors/smart_resize.h"
#include "media/testing/pictures.h"
#include "media/video/frame_sampling.h"

namespace valora::media {
namespace {

std::shared_ptr<const Processor> small_qwen3_vl(const Json& video = Json::object()) {
  const Json image = {{"patch_size", 16}};
  auto made = make_qwen3_vl_processor(image, video, {16, 2, 2});
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? *made : nullptr;
}

TEST(Qwen3VlVideos, PixelsOfAllFramesAreBoundedTogether) {
  const auto size = [](int64_t frames, int height, int width) {
    const auto made = smart_resize_video(width, height, frames, 2, 32, {128 * 1024, 768 * 1024});
    return made.ok() ? std::pair(made->height, made->width) : std::pair(0, 0);
  };
  EXPECT_EQ(size(8, 100, 200), std::pair(96, 192));
  EXPECT_EQ(size(3, 640, 480), std::pair(576, 416)) << "3 frames count as 4 against the bound";
  EXPECT_EQ(size(3, 48, 144), std::pair(128, 384));
  EXPECT_EQ(size(600, 360, 640), std::pair(32, 32));
  EXPECT_EQ(size(5, 20, 300), std::pair(64, 640)) << "a side below the factor is enlarged first";
  EXPECT_EQ(size(1, 100, 200), std::pair(0, 0)) << "less than a temporal patch";
  EXPECT_EQ(size(4, 10, 3000), std::pair(0, 0));
  EXPECT_EQ(*small_qwen3_vl()->video_tokens(200, 100, 8), 4 * 3 * 6);
}

TEST(Qwen3VlVideos, TokenCapLimitsFramesOfShortVideos) {
  const Json capped = {{"cap_pixels_per_frame", true},
                       {"max_video_tokens", 6},
                       {"size", {{"shortest_edge", 1024}, {"longest_edge", 768 * 1024}}}};
  EXPECT_EQ(*small_qwen3_vl(capped)->video_tokens(640, 320, 4), 2 * 1 * 3);
  EXPECT_GT(*small_qwen3_vl()->video_tokens(640, 320, 4), 6);
}

TEST(Qwen3VlVideos, FramesAreSpreadOverBothEnds) {
  const auto kept = [](int64_t frames, double fps) {
    return *small_qwen3_vl()->frame_sampler()({.frames = frames, .fps = fps});
  };
  EXPECT_EQ(kept(10, 30000.0 / 1001), (std::vector<int64_t>{0, 3, 6, 9})) << "at least four";
  EXPECT_EQ(kept(62, 30), (std::vector<int64_t>{0, 20, 41, 61}));
  EXPECT_EQ(kept(5, 1), (std::vector<int64_t>{0, 1, 2, 3, 4})) << "an odd number";
}

TEST(Qwen3VlVideos, PatchTimeIsMeanOfFirstAndLastFrame) {
  const std::vector<int64_t> kept{0, 20, 41, 61, 70};
  EXPECT_EQ(small_qwen3_vl()->patch_times({.frames = 80, .fps = 10}, kept),
            (std::vector<double>{1.0, 5.1, 7.0}));
  EXPECT_EQ(small_qwen3_vl()->patch_times({.frames = 5}, kept),
            (std::vector<double>{0.25, 1.25, 2}))
      << "without a rate, the model's own";
  ProcessorOverrides declared{.kind = MediaKind::kVideo};
  declared.frame_rate = 4;
  EXPECT_EQ((*small_qwen3_vl()->with(declared))->patch_times({.frames = 80, .fps = 10}, kept),
            (std::vector<double>{0.125, 0.625, 1}));
}

TEST(Qwen3VlVideos, RefusesPerFrameBounds) {
  ProcessorOverrides overrides{.kind = MediaKind::kVideo};
  overrides.max_pixels = 100'000;
  const auto refused = small_qwen3_vl()->with(overrides);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("max_pixels"), std::string::npos);
  overrides.kind = MediaKind::kImage;
  EXPECT_TRUE(small_qwen3_vl()->with(overrides).ok());
}

TEST(Qwen3VlVideos, RefusesOtherModelsSettings) {
  const auto made = make_qwen3_vl_processor(
      {{"patch_size", 16}}, {{"video_processor_type", "Qwen2VLVideoProcessor"}}, {16, 2, 2});
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("video_processor_type"), std::string::npos);
}

}  // namespace
}  // namespace valora::media
