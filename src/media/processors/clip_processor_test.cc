#include <gtest/gtest.h>

#include "media/processors/processor.h"
#include "media/testing/pictures.h"

namespace valora::media {
namespace {

using testing::make_picture;

// 4 x 4 pixels with patches of 2 x 2; bytes are not rescaled.
Json plain(const Json& more = Json::object()) {
  Json json{{"size", {{"shortest_edge", 4}}},
            {"crop_size", {{"height", 4}, {"width", 4}}},
            {"do_rescale", false},
            {"do_normalize", false}};
  json.update(more);
  return json;
}
constexpr ClipTarget kTarget{4, 2, false};

std::shared_ptr<const Processor> make_clip(const Json& json, const ClipTarget& target = kTarget) {
  auto processor = make_clip_processor(json, target);
  EXPECT_TRUE(processor.ok()) << processor.error().message;
  return processor.ok() ? *processor : nullptr;
}

TEST(ClipProcessor, CutsTheCentreIntoPatchesInReadingOrder) {
  const Image picture = make_picture(7, 4);
  const auto input = make_clip(plain({{"do_resize", false}}))->image(picture);
  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ(input->grid_h, 2);
  EXPECT_EQ(input->grid_w, 2);
  EXPECT_EQ(input->tokens, 4);
  ASSERT_EQ(input->patch_dim, 12);
  const float* value = &input->patches[2 * 12];  // the third patch: second row, first column
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 2; ++x)
        EXPECT_EQ(*value++, picture.rgb[((2 + y) * 7 + 1 + x) * 3 + c]) << "(7 - 4) / 2 is 1";
}

TEST(ClipProcessor, PadsSmallPicturesWithBlack) {
  Image white{3, 1, std::vector<uint8_t>(9, 255)};
  const auto input = make_clip(plain({{"do_resize", false}}))->image(white);
  ASSERT_TRUE(input.ok()) << input.error().message;
  int bright = 0;
  for (const float v : input->patches) bright += v == 255;
  EXPECT_EQ(bright, 9);
  // One column on the left, two rows above: padding is rounded up.
  EXPECT_EQ(input->patches[2 * 12 + 1], 255) << "third patch, first row, second pixel";
  EXPECT_EQ(input->patches[2 * 12 + 0], 0);
}

TEST(ClipProcessor, CountsClassTokenIfKept) {
  EXPECT_EQ(*make_clip(plain())->image_tokens(10, 20), 4);
  EXPECT_EQ(*make_clip(plain(), {4, 2, true})->image_tokens(10, 20), 5);
  EXPECT_EQ(make_clip(plain(), {4, 2, true})->image(make_picture(10, 20))->tokens, 5);
}

TEST(ClipProcessor, RefusesExtremeAspectRatios) {
  const auto processor = make_clip(plain());
  EXPECT_TRUE(processor->image_tokens(200, 1).ok());
  EXPECT_FALSE(processor->image_tokens(201, 1).ok());
  EXPECT_FALSE(processor->image(make_picture(201, 1)).ok());
  EXPECT_FALSE(make_clip(plain({{"size", {{"shortest_edge", 8192}}}}))->image_tokens(100, 1).ok());
  EXPECT_FALSE(make_clip(plain({{"do_center_crop", false}}))->image(make_picture(8, 4)).ok())
      << "not square after preparation";
  EXPECT_TRUE(make_clip(plain({{"do_center_crop", false}, {"size", {{"height", 4}, {"width", 4}}}}))
                  ->image(make_picture(8, 4))
                  .ok());
}

TEST(ClipProcessor, RefusesVideos) {
  const auto processor = make_clip(plain());
  EXPECT_FALSE(processor->video({make_picture(4, 4)}, 1).ok());
  EXPECT_FALSE(processor->video_tokens(4, 4, 1).ok());
  EXPECT_FALSE(processor->frame_sampler()(VideoInfo{}).ok());
}

TEST(ClipProcessor, NamesUnsupportedSettings) {
  const auto refusal = [](const Json& more, const ClipTarget& target = kTarget) {
    const auto processor = make_clip_processor(plain(more), target);
    return processor.ok() ? std::string("served") : processor.error().param;
  };
  EXPECT_EQ(refusal(Json::object()), "served");
  EXPECT_EQ(refusal({{"crop_size", 4}, {"size", 4}}), "served") << "as old files have it";
  EXPECT_EQ(refusal({{"crop_size", {{"height", 4}, {"width", 6}}}}), "crop_size");
  EXPECT_EQ(refusal(Json::object(), {6, 2, false}), "crop_size") << "the tower takes another size";
  EXPECT_EQ(refusal({{"crop_size", {{"side", 4}}}}), "crop_size");
  EXPECT_EQ(refusal({{"size", {{"shortest_edge", 0}}}}), "shortest_edge");
  EXPECT_EQ(refusal({{"resample", 4}}), "resample");
  EXPECT_EQ(refusal({{"do_pad", true}}), "do_pad");
  EXPECT_EQ(refusal({{"image_processor_type", "Qwen2VLImageProcessor"}}), "image_processor_type");
}

TEST(ClipProcessor, DigestCoversEverySetting) {
  const Digest digest = make_clip(plain())->settings_digest();
  EXPECT_EQ(make_clip(plain({{"do_convert_rgb", true}}))->settings_digest(), digest);
  for (const Json& setting :
       {Json{{"do_resize", false}}, Json{{"size", {{"shortest_edge", 5}}}},
        Json{{"do_rescale", true}}, Json{{"do_normalize", true}}, Json{{"image_mean", 0.5}},
        Json{{"size", {{"height", 4}, {"width", 4}}}}})
    EXPECT_NE(make_clip(plain(setting))->settings_digest(), digest) << setting;
  EXPECT_NE(make_clip(plain(), {4, 2, true})->settings_digest(), digest);
}

}  // namespace
}  // namespace valora::media
