#include <gtest/gtest.h>

#include "media/processors/anyres_grid.h"
#include "media/testing/pictures.h"

namespace valora::media {
namespace {

using testing::make_picture;

const std::vector<PixelSize> kGrids{{8, 4}, {4, 8}, {8, 8}, {12, 4}};
const Json kGridsText = {{4, 8}, {8, 4}, {8, 8}, {4, 12}};

// Tiles of 4 x 4 pixels with patches of 2 x 2; bytes are not rescaled.
Json anyres_of_four(const Json& more = Json::object()) {
  Json json{{"size", {{"height", 4}, {"width", 4}}},
            {"crop_size", {{"height", 4}, {"width", 4}}},
            {"image_grid_pinpoints", kGridsText},
            {"do_rescale", false},
            {"do_normalize", false}};
  json.update(more);
  return json;
}

Result<std::shared_ptr<const Processor>> anyres(int most, const Json& image,
                                                const Json& video = nullptr,
                                                const Json& both = nullptr) {
  return make_anyres_processor({image, video, both}, {4, 2, kGrids, kGrids, most});
}

TEST(AnyresProcessor, WholePicturePrecedesPaddedTiles) {
  const Image picture = make_picture(8, 3);
  const auto input = (*anyres(0, anyres_of_four()))->image(picture);
  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ(input->grid_t, 3);
  EXPECT_EQ(input->tile_rows, 1);
  EXPECT_EQ(input->tile_columns, 2);
  EXPECT_EQ(input->unpadded.cut_rows, 0) << "half of a row of patches is padding, which stays";
  EXPECT_EQ(input->tokens, 4 + 2 * (4 + 1));
  const Image whole = resize_bicubic(picture, 4, 4);
  EXPECT_EQ(input->patches[0], whole.rgb[0]);
  const float* value = &input->patches[size_t(4 + 4) * 12];  // the right tile's first patch
  for (int c = 0; c < 3; ++c) {
    EXPECT_EQ(*value++, picture.rgb[4 * 3 + c]);  // odd padding: the smaller part is above
    EXPECT_EQ(*value++, picture.rgb[5 * 3 + c]);
    value += 2;
  }
  EXPECT_EQ(input->patches[size_t(4 + 2) * 12 + 2], 0) << "below the picture";
}

TEST(AnyresProcessor, DropsPaddingAndSurplusPatches) {
  const AnyresTiles plain{4, 2, 0}, most{4, 2, 1};
  const auto cut = unpadded_tiles({9, 3}, {8, 8}, plain);
  EXPECT_EQ(cut->cut_rows, 1) << "4 / 3 of 4 rows, and half of the rest at each end";
  EXPECT_EQ(cut->rows, 2);
  EXPECT_EQ(cut->columns, 4);
  const auto fewer = unpadded_tiles({8, 8}, {8, 8}, most);
  EXPECT_EQ(fewer->rows, 2) << "16 patches where a tile has 4";
  EXPECT_EQ(fewer->columns, 2);
  EXPECT_FALSE(unpadded_tiles({1000, 1}, {48, 4}, {4, 1, 1}).ok());
}

TEST(AnyresProcessor, BestResolutionPreservesMostPixels) {
  const auto best = [](int width, int height) {
    const PixelSize found = best_resolution({width, height}, kGrids);
    return std::pair(found.width, found.height);
  };
  EXPECT_EQ(best(8, 4), std::pair(8, 4)) << "of those that keep all, the one with least padding";
  EXPECT_EQ(best(16, 16), std::pair(8, 8));
  EXPECT_EQ(best(30, 10), std::pair(12, 4));
  EXPECT_EQ(best(5000, 1), std::pair(8, 4)) << "none keeps a pixel";
}

TEST(AnyresProcessor, SeveralPicturesArePaddedToSquares) {
  const Json settings = anyres_of_four({{"image_mean", {0.5, 0.1, 0}}});
  const auto one = *anyres(9, settings), several = one->of_several();
  ASSERT_TRUE(several);
  EXPECT_FALSE((*anyres(0, settings))->of_several()) << "LLaVA-NeXT cuts each";
  const Image picture = make_picture(4, 2);
  const auto input = several->image(picture);
  ASSERT_TRUE(input.ok());
  EXPECT_EQ(input->grid_t, 1);
  EXPECT_EQ(input->tokens, 5);
  EXPECT_EQ(several->image_tokens(4, 2).value(), 5);
  EXPECT_EQ(input->patches[0], 127);
  EXPECT_EQ(input->patches[4], 25);
  EXPECT_EQ(input->patches[2], picture.rgb[0]) << "the second row";
  EXPECT_FALSE(several->settings_digest() == one->settings_digest());
}

TEST(AnyresProcessor, FramesArePooledTwoByTwo) {
  const auto processor = *anyres(9, anyres_of_four());
  const auto input = processor->video({make_picture(9, 5), make_picture(3, 7)}, 0, {});
  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ(input->grid_t, 2);
  EXPECT_EQ(input->tokens, 3);
  EXPECT_FALSE(processor->video({}, 0, {}).ok());
  EXPECT_FALSE((*anyres(0, anyres_of_four()))->video({make_picture(9, 5)}, 0, {}).ok());
  VideoInfo film;
  film.frames = 10;
  film.fps = 5;
  EXPECT_EQ(processor->frame_sampler()(film)->size(), 10u);
  const auto chosen =
      processor->with({.kind = MediaKind::kVideo, .frames = UniformSampling{4, {}}});
  EXPECT_EQ((*chosen)->frame_sampler()(film).value(), (std::vector<int64_t>{0, 3, 6, 9}));
  EXPECT_FALSE(processor->with({.kind = MediaKind::kImage, .min_pixels = 5}).ok());
  Json video = anyres_of_four({{"do_sample_frames", true}, {"num_frames", 4}});
  const auto sample = [&] { return (*anyres(9, anyres_of_four(), video))->frame_sampler()(film); };
  EXPECT_EQ(sample().value(), (std::vector<int64_t>{0, 2, 5, 7}));
  video["num_frames"] = 11;
  EXPECT_FALSE(sample().ok()) << "fewer frames than it keeps";
}

TEST(AnyresProcessor, NamesSettingsThatDoNotFit) {
  const auto refused = [](int most, const Json& image, const Json& both = nullptr,
                          const Json& video = nullptr) {
    const auto made = anyres(most, anyres_of_four(image), video, both);
    return made.ok() ? "" : made.error().param;
  };
  EXPECT_EQ(refused(0, Json::object()), "");
  EXPECT_EQ(refused(0, {{"do_pad", false}, {"do_resize", false}}), "") << "without effect";
  EXPECT_EQ(refused(9, {{"do_resize", false}}), "do_resize");
  EXPECT_EQ(refused(0, {{"size", {{"shortest_edge", 4}}}, {"crop_size", 4}}), "");
  EXPECT_EQ(refused(0, {{"size", {{"shortest_edge", 6}}}}), "size");
  EXPECT_EQ(refused(0, {{"crop_size", {{"height", 4}, {"width", 6}}}}), "crop_size");
  EXPECT_EQ(refused(0, {{"crop_size", nullptr}}), "crop_size") << "the default is 224";
  EXPECT_EQ(refused(9, {{"crop_size", nullptr}}), "");
  EXPECT_EQ(refused(0, {{"resample", 4}}), "resample");
  EXPECT_EQ(refused(0, {{"image_grid_pinpoints", {{4, 8}}}}), "image_grid_pinpoints");
  EXPECT_EQ(refused(0, {{"image_grid_pinpoints", {{4}}}}), "image_grid_pinpoints");
  EXPECT_EQ(refused(0, {{"image_processor_type", "CLIPImageProcessor"}}), "image_processor_type");
  EXPECT_EQ(refused(0, {{"odd", 1}}), "odd");
  EXPECT_EQ(refused(9, Json::object(), nullptr, anyres_of_four({{"do_resize", false}})),
            "do_resize");
  const Json object = Json::object();
  EXPECT_EQ(refused(0, object, {{"patch_size", 3}}), "patch_size");
  EXPECT_EQ(refused(0, object, {{"num_additional_image_tokens", 1}}), "num_additional_image_tokens")
      << "without a strategy, nothing is left out";
  Json both{{"num_additional_image_tokens", 1}, {"vision_feature_select_strategy", "default"}};
  EXPECT_EQ(refused(0, object, both), "");
  both["num_additional_image_tokens"] = 0;
  EXPECT_EQ(refused(0, object, both), "num_additional_image_tokens");
  EXPECT_EQ(refused(9, object, {{"vision_feature_select_strategy", "default"}}),
            "vision_feature_select_strategy");
  EXPECT_EQ(refused(9, object, {{"num_image_tokens", 729}}), "num_image_tokens");
  EXPECT_EQ(refused(9, object, {{"vision_aspect_ratio", "anyres_max_4"}}), "vision_aspect_ratio");
  EXPECT_EQ(refused(9, object, {{"vision_aspect_ratio", "anyres_max_9"}}), "");
}

}  // namespace
}  // namespace valora::media
