#include <gtest/gtest.h>

#include <cmath>

#include "media/processors/processor.h"
#include "media/processors/smart_resize.h"
#include "media/testing/pictures.h"
#include "media/video/frame_sampling.h"

namespace valora::media {
namespace {

using testing::make_picture;

std::shared_ptr<const Processor> make_qwen2_vl(const Json& image, const Json& video = nullptr) {
  const PatchLayout tower{image.value("patch_size", 14), image.value("temporal_patch_size", 2),
                          image.value("merge_size", 2)};
  auto processor = make_qwen2_vl_processor(image, video, tower);
  EXPECT_TRUE(processor.ok()) << processor.error().message;
  return processor.ok() ? *processor : nullptr;
}

// Patches of 2 x 2 pixels, merged by 2 x 2; bytes are not rescaled.
const Json kPlain = {{"patch_size", 2},    {"merge_size", 2},     {"temporal_patch_size", 2},
                     {"do_resize", false}, {"do_rescale", false}, {"do_normalize", false}};

TEST(SmartResize, RoundsToMultiplesWithinBounds) {
  const auto size = [](int width, int height, PixelBounds bounds = {}) {
    const auto result = smart_resize(width, height, 28, bounds);
    return result.ok() ? std::pair(result->width, result->height) : std::pair(0, 0);
  };
  EXPECT_EQ(size(280, 140), std::pair(280, 140));
  EXPECT_EQ(size(70, 98), std::pair(56, 112)) << "2.5 and 3.5 round to the even neighbour";
  EXPECT_EQ(size(10'000, 10'000, {56 * 56, 100 * 784}), std::pair(280, 280));
  EXPECT_EQ(size(1, 1, {56 * 56, 100 * 784}), std::pair(56, 56));
  EXPECT_EQ(size(2000, 10), std::pair(812, 28))
      << "a side that rounds to nothing makes the area too small";
  EXPECT_FALSE(smart_resize(2001, 10, 28, {}).ok());
  EXPECT_FALSE(smart_resize(0, 10, 28, {}).ok());
}

TEST(Qwen2VlProcessor, OrdersRowsByMergeBlock) {
  const auto processor = make_qwen2_vl(kPlain);
  const Image picture = make_picture(8, 4);
  const auto input = processor->image(picture);
  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ(input->grid_t, 1);
  EXPECT_EQ(input->grid_h, 2);
  EXPECT_EQ(input->grid_w, 4);
  EXPECT_EQ(input->tokens, 2);
  ASSERT_EQ(input->patch_dim, 3 * 2 * 2 * 2);
  // The third row is the lower left patch of the first block: patch row 1, column 0.
  const float* row = &input->patches[2 * input->patch_dim];
  for (int c = 0; c < 3; ++c)
    for (int t = 0; t < 2; ++t)
      for (int y = 0; y < 2; ++y)
        for (int x = 0; x < 2; ++x) EXPECT_EQ(*row++, picture.rgb[((2 + y) * 8 + x) * 3 + c]);
}

TEST(Qwen2VlProcessor, PadsVideosWithTheLastFrame) {
  const auto processor = make_qwen2_vl(kPlain);
  const std::vector<Image> frames{make_picture(4, 4, 0), make_picture(4, 4, 1),
                                  make_picture(4, 4, 2)};
  const auto input = processor->video(frames, 4.0);
  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ(input->grid_t, 2);
  EXPECT_EQ(input->tokens, 2);
  EXPECT_EQ(input->seconds_per_grid, 0.5);
  EXPECT_EQ(input->patches[0], frames[0].rgb[0]);
  EXPECT_EQ(input->patches[4], frames[1].rgb[0]) << "the second frame of the patch's first channel";
  const float* last_group = &input->patches[4 * input->patch_dim];
  EXPECT_EQ(last_group[0], frames[2].rgb[0]);
  EXPECT_EQ(last_group[4], frames[2].rgb[0]);
  EXPECT_EQ(processor->video(frames, 0)->seconds_per_grid, 1.0)
      << "an unknown rate is taken for the default of 2";
}

TEST(Qwen2VlProcessor, RefusesFramesOfDifferentSizes) {
  const auto processor = make_qwen2_vl(kPlain);
  EXPECT_FALSE(processor->video({}, 1).ok());
  EXPECT_FALSE(processor->video({make_picture(4, 4), make_picture(8, 4)}, 1).ok());
}

TEST(Qwen2VlProcessor, PredictsTokensFromSize) {
  const auto processor = make_qwen2_vl(Json::object());
  for (const auto& [width, height] : {std::pair{100, 200}, {640, 480}, {3000, 20}}) {
    const auto input = processor->image(make_picture(width, height));
    EXPECT_EQ(*processor->image_tokens(width, height), input->tokens);
    const auto video = processor->video({5, make_picture(width, height)}, 1);
    EXPECT_EQ(*processor->video_tokens(width, height, 5), video->tokens);
  }
  EXPECT_FALSE(processor->image_tokens(5000, 10).ok());
}

TEST(Qwen2VlProcessor, VideosUseTheirOwnPixelBounds) {
  const Json image = {{"min_pixels", 56 * 56}, {"max_pixels", 28 * 28 * 8}};
  EXPECT_EQ(*make_qwen2_vl(image)->video_tokens(1000, 1000, 2),
            *make_qwen2_vl(image)->image_tokens(1000, 1000))
      << "without settings of their own, those of images hold";
  EXPECT_GT(*make_qwen2_vl(image, Json::object())->video_tokens(1000, 1000, 2), 500);
  const Json small = {{"size", {{"shortest_edge", 784}, {"longest_edge", 784 * 2}}}};
  EXPECT_EQ(*make_qwen2_vl(image, small)->video_tokens(500, 500, 2), 1);
}

TEST(Qwen2VlProcessor, AcceptsBothSpellingsOfPixelBounds) {
  const auto tokens = [](const Json& image) {
    return *make_qwen2_vl(image)->image_tokens(1000, 1000);
  };
  const Json edges = {{"shortest_edge", 784}, {"longest_edge", 784 * 9}},
             pixels = {{"min_pixels", 784}, {"max_pixels", 784 * 9}};
  EXPECT_EQ(tokens(pixels), 9);
  EXPECT_EQ(tokens({{"size", edges}}), 9);
  EXPECT_EQ(tokens({{"size", pixels}}), 9);
  Json both = pixels;
  both["size"] = {{"min_pixels", 784}, {"max_pixels", 784 * 99}};
  EXPECT_EQ(tokens(both), 9) << "the setting next to `size` wins";
  both["size"] = Json::object();
  EXPECT_EQ(tokens(both), 9);
}

// Expected values from transformers 5.24's Qwen2VLVideoProcessor.resize().
TEST(Qwen2VlProcessor, FramesShareTheTokensOfAVideo) {
  Json video = {{"max_video_tokens", 100}};
  const auto tokens = [&](int64_t frames) {
    return *make_qwen2_vl(Json::object(), video)->video_tokens(700, 700, frames);
  };
  const int64_t unbounded = tokens(8);
  EXPECT_EQ(unbounded, 4 * 25 * 25) << "without cap_pixels_per_frame, the setting means nothing";
  video["cap_pixels_per_frame"] = true;
  // int(100 · 28² · 0.9) · 2 / 2 frames = 70560 pixels: below 1.05 · 128 · 28² = 105369.
  EXPECT_EQ(tokens(2), 11 * 11);
  video["max_video_tokens"] = 1000;
  EXPECT_EQ(tokens(2), 625) << "the bound of each frame";
  EXPECT_EQ(tokens(4), 2 * 21 * 21) << "352800 pixels for each";
}

TEST(Qwen2VlProcessor, DigestCoversEverySetting) {
  const Digest plain = make_qwen2_vl(Json::object())->settings_digest();
  EXPECT_EQ(make_qwen2_vl(Json::object())->settings_digest(), plain);
  EXPECT_EQ(make_qwen2_vl({{"do_convert_rgb", true}, {"processor_class", "X"}})->settings_digest(),
            plain);
  for (const Json& setting :
       {Json{{"do_resize", false}}, Json{{"do_rescale", false}}, Json{{"do_normalize", false}},
        Json{{"min_pixels", 784}}, Json{{"max_pixels", 784 * 9}}, Json{{"rescale_factor", 0.01}},
        Json{{"image_mean", 0.5}}, Json{{"image_std", {0.5, 0.5, 0.5}}}, Json{{"patch_size", 7}},
        Json{{"cap_pixels_per_frame", true}}, Json{{"merge_size", 1}},
        Json{{"temporal_patch_size", 1}}, Json{{"fps", 1.0}}, Json{{"num_frames", 8}},
        Json{{"min_frames", 2}}, Json{{"max_frames", 16}}})
    EXPECT_NE(make_qwen2_vl(setting)->settings_digest(), plain) << setting;
}

TEST(Qwen2VlProcessor, NamesUnsupportedSettings) {
  const auto refusal = [](const Json& image, const Json& video = nullptr) {
    const auto processor = make_qwen2_vl_processor(image, video, {});
    return processor.ok() ? std::string("served") : processor.error().param;
  };
  EXPECT_EQ(refusal({{"some_new_setting", 3}}), "some_new_setting");
  EXPECT_EQ(refusal({{"do_center_crop", true}}), "served") << "the reference's class ignores it";
  EXPECT_EQ(refusal({{"size", {{"shortest_edge", 784}}}}), "size");
  EXPECT_EQ(refusal(Json::object(), {{"cap_pixels_per_frame", true}, {"max_video_tokens", 0}}),
            "max_video_tokens");
  EXPECT_EQ(refusal({{"do_center_crop", false}}), "served");
  EXPECT_EQ(refusal({{"resample", 0}}), "resample");
  EXPECT_EQ(refusal({{"patch_size", 0}}), "patch_size");
  EXPECT_EQ(refusal({{"patch_size", "14"}}), "patch_size");
  EXPECT_EQ(refusal({{"image_mean", {1, 2}}}), "image_mean");
  EXPECT_EQ(refusal({{"max_pixels", -1}}), "max_pixels");
  EXPECT_EQ(refusal({{"image_processor_type", "ViTImageProcessor"}}), "image_processor_type");
  EXPECT_EQ(refusal(Json::object(), {{"fps", 2.0}, {"num_frames", 8}}), "num_frames");
  EXPECT_EQ(refusal(Json::object(), {{"patch_size", 16}}), "patch_size");
  EXPECT_EQ(refusal({{"patch_size", 16}}), "patch_size") << "the tower takes 14";
  EXPECT_EQ(refusal({{"merge_size", 1}}), "merge_size");
  EXPECT_EQ(refusal(Json::object(), {{"temporal_patch_size", 1}}), "temporal_patch_size");
  EXPECT_FALSE(make_qwen2_vl_processor(nullptr, nullptr, {}).ok());
}

TEST(SampleFrames, SpreadsEvenlyAtTheRate) {
  const auto indices = [](int64_t frames, double fps, FrameSampling sampling = {}) {
    const auto result = sample_frames(VideoInfo{frames, fps}, sampling);
    return result.ok() ? *result : std::vector<int64_t>{};
  };
  using Indices = std::vector<int64_t>;
  EXPECT_EQ(indices(60, 20), (Indices{0, 10, 20, 30, 40, 50}));
  EXPECT_EQ(indices(10, 100), (Indices{0, 2, 5, 7})) << "at least four";
  EXPECT_EQ(indices(3, 30), (Indices{0, 1})) << "whole temporal patches";
  EXPECT_EQ(indices(1, 30), (Indices{0})) << "a single frame is repeated later";
  EXPECT_EQ(indices(100'000, 10).size(), 768u);
  EXPECT_EQ(indices(40, 10, {.num_frames = 4}), (Indices{0, 10, 20, 30}));
  EXPECT_EQ(indices(3, 10, {.num_frames = 4}), Indices{}) << "fewer than asked for";
  EXPECT_EQ(indices(40, 0), Indices{}) << "no frame rate";
  EXPECT_EQ(indices(0, 10), Indices{});
  constexpr int64_t kHuge = int64_t{768} << 52;
  EXPECT_EQ(indices(kHuge, 10).back(), kHuge / 768 * 767);
}

}  // namespace
}  // namespace valora::media
