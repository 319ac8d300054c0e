#include <gtest/gtest.h>

#include "media/processors/processor.h"
#include "media/testing/pictures.h"

namespace valora::media {
namespace {

using testing::make_picture;

// Tiles of 4 x 4 pixels with patches of 2 x 2; bytes are not rescaled.
Json canvas_of_four(const Json& more = Json::object()) {
  Json json{{"size", {{"height", 4}, {"width", 4}}},
            {"do_rescale", false},
            {"do_normalize", false},
            {"max_patches", 6}};
  json.update(more);
  return json;
}

Result<std::shared_ptr<const Processor>> canvas(const Json& image, const Json& video = nullptr,
                                                const Json& both = nullptr) {
  return make_canvas_processor({image, video, both}, {2, 2});
}

TEST(CanvasProcessor, CutsClosestGridThenAppendsWholePicture) {
  const Image picture = make_picture(8, 12);
  const auto input = (*canvas(canvas_of_four()))->image(picture);
  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ(input->grid_t, 7) << "2 x 3 tiles";
  EXPECT_EQ(input->tokens, 7) << "four patches make a token";
  const float* value = &input->patches[size_t(3 * 4) * 12];  // the fourth tile: second row, right
  for (int c = 0; c < 3; ++c)
    for (int y = 4; y < 6; ++y)
      for (int x = 4; x < 6; ++x) EXPECT_EQ(*value++, picture.rgb[(y * 8 + x) * 3 + c]);
  const Image whole = resize_bicubic(picture, 4, 4);
  EXPECT_EQ(input->patches[size_t(6 * 4) * 12], whole.rgb[0]);
}

int64_t tiles(const Json& settings, int width, int height) {
  return (*canvas(settings))->image_tokens(width, height).value();
}

TEST(CanvasProcessor, TileCountFollowsSize) {
  const Json settings = canvas_of_four();
  EXPECT_EQ(tiles(settings, 5, 5), 1) << "one tile needs no whole picture";
  EXPECT_EQ(tiles(settings, 6, 6), 5) << "larger than half of 2 x 2 tiles";
  EXPECT_EQ(tiles(settings, 50, 5), 7) << "6 x 1, the longest";
  EXPECT_EQ(tiles(canvas_of_four({{"max_patches", 1}}), 50, 5), 1);
  EXPECT_EQ(tiles(canvas_of_four({{"min_patches", 7}}), 50, 5), 1) << "no grid has that many tiles";
  EXPECT_EQ(tiles(canvas_of_four({{"crop_to_patches", false}}), 50, 5), 7)
      << "the reference's processor of prompts cuts all the same";
}

TEST(CanvasProcessor, KeepsAllFramesAsTiles) {
  const auto processor = *canvas(canvas_of_four());
  const auto input = processor->video({make_picture(9, 5), make_picture(3, 7)}, 0, {});
  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ(input->kind, MediaKind::kVideo);
  EXPECT_EQ(input->grid_t, 2);
  EXPECT_EQ(input->tokens, 2);
  EXPECT_FALSE(processor->video({}, 0, {}).ok());
  VideoInfo film;
  film.frames = 3;
  film.fps = 30;
  EXPECT_EQ(processor->frame_sampler()(film).value(), (std::vector<int64_t>{0, 1, 2}));
  film.frames = int64_t{1} << 40;
  EXPECT_FALSE(processor->frame_sampler()(film).ok());
}

TEST(CanvasProcessor, RequestChoosesFrameCount) {
  const auto processor = *canvas(canvas_of_four());
  ProcessorOverrides four{.kind = MediaKind::kVideo, .frames = UniformSampling{4, {}}};
  const auto chosen = processor->with(four);
  ASSERT_TRUE(chosen.ok()) << chosen.error().message;
  VideoInfo film;
  film.frames = 10;
  film.fps = 5;
  EXPECT_EQ((*chosen)->frame_sampler()(film).value(), (std::vector<int64_t>{0, 3, 6, 9}));
  EXPECT_FALSE((*chosen)->settings_digest() == processor->settings_digest());
  four.max_pixels = 100;
  EXPECT_FALSE(processor->with(four).ok());
  EXPECT_FALSE(processor->with({.kind = MediaKind::kImage, .min_pixels = 5}).ok());
}

TEST(CanvasProcessor, SamplesMiddleOfEqualSegments) {
  Json video = canvas_of_four({{"do_sample_frames", true}, {"num_frames", 5}});
  VideoInfo film;
  film.frames = 10;
  film.fps = 5;
  const auto sample = [&] { return (*canvas(canvas_of_four(), video))->frame_sampler()(film); };
  EXPECT_EQ(sample().value(), (std::vector<int64_t>{1, 3, 5, 7, 9}));
  video["initial_shift"] = false;
  EXPECT_EQ(sample().value(), (std::vector<int64_t>{0, 2, 4, 6, 8}));
  film.frames = 4;
  EXPECT_FALSE(sample().ok()) << "fewer frames than it keeps";
  video["num_frames"] = nullptr;
  video["fps"] = 2.5;
  EXPECT_EQ(sample().value(), (std::vector<int64_t>{0, 2}));
}

TEST(CanvasProcessor, NamesUnsupportedSettings) {
  const auto refused = [](const Json& image, const Json& video = nullptr,
                          const Json& both = nullptr) {
    const auto made = canvas(image, video, both);
    return made.ok() ? "" : made.error().param;
  };
  EXPECT_EQ(refused(canvas_of_four()), "");
  EXPECT_EQ(refused(canvas_of_four({{"resample", 1}})), "resample");
  EXPECT_EQ(refused(canvas_of_four({{"size", {{"height", 4}, {"width", 8}}}})), "size");
  EXPECT_EQ(refused(canvas_of_four({{"size", {{"shortest_edge", 4}}}})), "size");
  EXPECT_EQ(refused(canvas_of_four({{"size", {{"height", 6}, {"width", 6}}}})), "size")
      << "three patches in blocks of two";
  EXPECT_EQ(refused(canvas_of_four({{"do_center_crop", true}})), "do_center_crop");
  EXPECT_EQ(refused(canvas_of_four({{"image_processor_type", "CLIPImageProcessor"}})),
            "image_processor_type");
  EXPECT_EQ(refused(canvas_of_four({{"max_patches", 5000}})), "max_patches");
  EXPECT_EQ(refused(canvas_of_four({{"max_patches", 1}, {"do_resize", false}})), "do_resize");
  EXPECT_EQ(refused(canvas_of_four(), canvas_of_four({{"do_resize", false}})), "do_resize");
  EXPECT_EQ(refused(canvas_of_four(), canvas_of_four({{"do_sample_frames", true}})),
            "do_sample_frames");
  EXPECT_EQ(refused(canvas_of_four(), {{"size", {{"height", 8}, {"width", 8}}}}), "size");
  EXPECT_EQ(refused(canvas_of_four(), nullptr, {{"image_seq_length", 256}}), "image_seq_length");
  EXPECT_EQ(refused(canvas_of_four(), nullptr, {{"image_seq_length", 1}}), "");
}

}  // namespace
}  // namespace valora::media
