#include <gtest/gtest.h>

#include "media/processors/processor.h"
#include "media/testing/pictures.h"

namespace valora::media {
namespace {

using testing::make_picture;

// Tiles of 4 x 4 pixels with patches of 2 x 2; bytes are not rescaled.
Json tiles_of_four(const Json& more = Json::object()) {
  Json json{{"size", {{"longest_edge", 8}}},
            {"max_image_size", {{"longest_edge", 4}}},
            {"do_rescale", false},
            {"do_normalize", false}};
  json.update(more);
  return json;
}
constexpr TileTarget kTwoByTwo{2, 2};
const Json kNoMore = Json::object();

std::shared_ptr<const Processor> make_tiles(const Json& image, const TileTarget& target = kTwoByTwo,
                                            const Json& both = nullptr) {
  auto processor = make_tile_processor({image, nullptr, both}, target);
  EXPECT_TRUE(processor.ok()) << processor.error().message;
  return processor.ok() ? *processor : nullptr;
}

TEST(TileProcessor, CutsRowByRowAndAddsTheWholePicture) {
  const Image picture = make_picture(8, 8);
  const auto input = make_tiles(tiles_of_four())->image(picture);
  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ(input->tile_rows, 2);
  EXPECT_EQ(input->tile_columns, 2);
  EXPECT_EQ(input->grid_t, 5);
  EXPECT_EQ(input->grid_h, 2);
  EXPECT_EQ(input->tokens, 5) << "four patches make a token";
  ASSERT_EQ(input->patch_dim, 12);
  const float* value = &input->patches[size_t(2 * 4 + 1) * 12];  // third tile, second patch
  for (int c = 0; c < 3; ++c)
    for (int y = 4; y < 6; ++y)
      for (int x = 2; x < 4; ++x) EXPECT_EQ(*value++, picture.rgb[(y * 8 + x) * 3 + c]);
  const Image whole = resize_image(picture, 4, 4, Resample::kLanczos);
  EXPECT_EQ(input->patches[size_t(4 * 4 + 3) * 12], whole.rgb[(2 * 4 + 2) * 3]);
}

TEST(TileProcessor, RowsAreOrderedByMergeBlock) {
  // Tiles of 4 x 4 patches, one pixel each.
  const Image picture = make_picture(4, 4);
  const auto input =
      make_tiles(tiles_of_four({{"do_resize", false}, {"do_image_splitting", false}}), {1, 2})
          ->image(picture);
  ASSERT_TRUE(input.ok()) << input.error().message;
  const std::pair<int, int> places[] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {0, 3}};
  for (size_t i = 0; i < std::size(places); ++i)
    EXPECT_EQ(input->patches[i * 3],
              picture.rgb[size_t(places[i].first * 4 + places[i].second) * 3]);
}

TEST(TileProcessor, SmallPictureIsSingleTile) {
  for (const Json& more : {Json{{"do_image_splitting", false}}, Json{{"do_resize", false}}}) {
    const auto input = make_tiles(tiles_of_four(more))->image(make_picture(3, 4));
    ASSERT_TRUE(input.ok()) << input.error().message;
    EXPECT_EQ(input->tile_rows, 0);
    EXPECT_EQ(input->grid_t, 1);
  }
}

TEST(TileProcessor, PredictsTokensFromSize) {
  const auto processor = make_tiles(tiles_of_four());
  for (const auto& [width, height] :
       {std::pair{1, 1}, {9, 2}, {2, 9}, {400, 3}, {3, 400}, {5, 5}, {100, 51}}) {
    const auto input = processor->image(make_picture(width, height));
    ASSERT_TRUE(input.ok()) << input.error().message;
    EXPECT_EQ(*processor->image_tokens(width, height), input->tokens);
  }
  EXPECT_EQ(*processor->image_tokens(400, 3), 3) << "one row of two, and the whole";
  EXPECT_EQ(*make_tiles(tiles_of_four({{"size", {{"longest_edge", 1 << 20}}}}))->image_tokens(2, 2),
            1024 * 1024 + 1)
      << "no more than 4096 pixels a side";
}

TEST(TileProcessor, DropsPixelsBeyondWholePatches) {
  const auto input = make_tiles(tiles_of_four({{"max_image_size", {{"longest_edge", 5}}},
                                               {"do_image_splitting", false}}))
                         ->image(make_picture(5, 5));
  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ(input->grid_h, 2);
}

TEST(TileProcessor, NamesUnsupportedSettings) {
  const auto refused = [](const Json& more, const TileTarget& target = kTwoByTwo,
                          const Json& both = nullptr) {
    const auto processor = make_tile_processor({tiles_of_four(more), nullptr, both}, target);
    return processor.ok() ? std::string() : processor.error().param;
  };
  EXPECT_EQ(refused({{"resample", 4}}), "resample");
  EXPECT_EQ(refused({{"do_sharpen", true}}), "do_sharpen");
  EXPECT_EQ(refused({{"size", {{"shortest_edge", 8}}}}), "size");
  EXPECT_EQ(refused({{"max_image_size", 8}}), "max_image_size");
  EXPECT_EQ(refused(kNoMore, {2, 3}), "max_image_size");
  EXPECT_EQ(refused({{"image_processor_type", "CLIPImageProcessor"}}), "image_processor_type");
  EXPECT_EQ(refused(kNoMore, kTwoByTwo, {{"image_seq_len", 4}}), "image_seq_len");
  EXPECT_EQ(refused(kNoMore, kTwoByTwo, {{"image_seq_len", 1}}), "");
  EXPECT_FALSE(make_tiles(tiles_of_four())->video({make_picture(4, 4)}, 1).ok());
}

TEST(TileProcessor, SettingsThatChangePixelsChangeTheDigest) {
  const auto digest = [](const Json& more, const TileTarget& target = kTwoByTwo) {
    return make_tiles(tiles_of_four(more), target)->settings_digest();
  };
  const Digest plain = digest(kNoMore);
  EXPECT_NE(digest({{"resample", 3}}), plain);
  EXPECT_NE(digest({{"do_image_splitting", false}}), plain);
  EXPECT_NE(digest({{"size", {{"longest_edge", 12}}}}), plain);
  EXPECT_NE(digest({{"max_image_size", {{"longest_edge", 8}}}}), plain);
  EXPECT_NE(digest(kNoMore, {2, 1}), plain);
  EXPECT_EQ(digest({{"do_pad", true}, {"do_convert_rgb", true}}), plain);
}

TEST(TileProcessor, VideoFramesAreNotTiled) {
  const Json json = tiles_of_four({{"video_sampling", {{"fps", 2}, {"max_frames", 3}}}});
  const auto processor = *make_tile_processor({json, nullptr, nullptr}, kTwoByTwo, true);
  const std::vector<Image> frames{make_picture(9, 4), make_picture(9, 4)};
  const auto video = processor->video(frames, 0);
  ASSERT_TRUE(video.ok()) << video.error().message;
  EXPECT_EQ(video->grid_t, 2);
  EXPECT_EQ(video->tile_rows, 0);
  EXPECT_EQ(video->tokens, *processor->video_tokens(9, 4, 2));
  const auto whole = make_tiles(tiles_of_four({{"do_image_splitting", false}}))->image(frames[0]);
  ASSERT_EQ(video->patches.size(), 2 * whole->patches.size());
  EXPECT_TRUE(std::equal(whole->patches.begin(), whole->patches.end(), video->patches.begin()));
  EXPECT_EQ(*processor->frame_sampler()({.frames = 5, .fps = 5}), (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(*processor->frame_sampler()({.frames = 90, .fps = 10}),
            (std::vector<int64_t>{10, 45, 80}))
      << "a second at each end of a long video is left out";
  const std::vector<int64_t> kept{0, 3};
  EXPECT_EQ(processor->patch_times({.frames = 5, .fps = 2}, kept), (std::vector<double>{0, 1.5}));
  EXPECT_EQ(processor->patch_times({.frames = 5}, kept), (std::vector<double>{0, 0.125}));
}

TEST(TileProcessor, NamesUnsupportedVideoSettings) {
  const auto refused = [](const Json& more) {
    Json video = tiles_of_four(more);
    const auto processor = make_tile_processor({tiles_of_four(), video, nullptr}, kTwoByTwo, true);
    return processor.ok() ? std::string() : processor.error().param;
  };
  EXPECT_EQ(refused({{"num_frames", 4}, {"fps", 1.5}, {"do_sample_frames", false}}), "");
  EXPECT_EQ(refused({{"num_frames", 0}, {"fps", 1}}), "num_frames");
  EXPECT_EQ(refused({{"num_frames", 4}, {"fps", -1}}), "fps");
  EXPECT_EQ(refused({{"do_resize", false}}), "do_resize");
  EXPECT_EQ(refused({{"max_image_size", {{"longest_edge", 8}}}}), "max_image_size");
  EXPECT_EQ(refused({{"video_processor_type", "Qwen2VLVideoProcessor"}}), "video_processor_type");
  const auto unsampled = *make_tile_processor({tiles_of_four(), nullptr, nullptr}, kTwoByTwo, true);
  EXPECT_FALSE(unsampled->frame_sampler()({.frames = 5, .fps = 5}).ok());
}

}  // namespace
}  // namespace valora::media
