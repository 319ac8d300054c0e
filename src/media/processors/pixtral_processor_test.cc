#include <gtest/gtest.h>

#include "media/processors/processor.h"
#include "media/testing/pictures.h"

namespace valora::media {
namespace {

using testing::make_picture;

constexpr PixtralTarget kPixtral{2, 2, 6};

// Blocks of 2 x 2 patches of 2 x 2 pixels; bytes are not rescaled.
Json pixtral_of_twelve(const Json& more = Json::object()) {
  Json json{{"size", {{"longest_edge", 12}}}, {"do_rescale", false}, {"do_normalize", false}};
  json.update(more);
  return json;
}

Result<std::shared_ptr<const Processor>> pixtral(const Json& image, const Json& both = nullptr) {
  return make_pixtral_processor({image, nullptr, both}, kPixtral);
}

TEST(PixtralProcessor, OrdersPatchesByBlockAndTokensByRow) {
  const Image picture = make_picture(8, 4);
  const auto input = (*pixtral(pixtral_of_twelve()))->image(picture);
  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ(input->grid_h, 2);
  EXPECT_EQ(input->grid_w, 4);
  EXPECT_EQ(input->tokens, 2);
  EXPECT_EQ(input->token_rows, 1);
  const auto first = [&](int patch) { return input->patches[size_t(patch) * 12]; };
  EXPECT_EQ(first(1), picture.rgb[2 * 3]);
  EXPECT_EQ(first(2), picture.rgb[2 * 8 * 3]) << "the block's second row";
  EXPECT_EQ(first(4), picture.rgb[4 * 3]) << "the second block";
}

TEST(PixtralProcessor, ResizesToWholeBlocksWithinLimit) {
  const auto processor = *pixtral(pixtral_of_twelve());
  EXPECT_EQ(processor->image_tokens(12, 12).value(), 9);
  EXPECT_EQ(processor->image_tokens(1, 5).value(), 2);
  EXPECT_EQ(processor->image_tokens(1200, 600).value(), 6);
  EXPECT_FALSE(processor->image_tokens(1200, 50).ok()) << "half a pixel high";
  EXPECT_FALSE(processor->video({make_picture(4, 4)}, 1).ok());
}

TEST(PixtralProcessor, NamesSettingsThatDoNotFit) {
  const auto refused = [](const Json& image, const Json& both = nullptr) {
    const auto made = pixtral(pixtral_of_twelve(image), both);
    return made.ok() ? "" : made.error().param;
  };
  EXPECT_EQ(refused({{"patch_size", 99}, {"do_pad", true}}), "") << "without effect";
  EXPECT_EQ(refused({{"size", {{"height", 12}, {"width", 8}}}}), "");
  EXPECT_EQ(refused({{"size", {{"longest_edge", 14}}}}), "size") << "8 patches of 6";
  EXPECT_EQ(refused({{"size", {{"shortest_edge", 4}}}}), "size");
  EXPECT_EQ(refused({{"do_resize", false}}), "do_resize");
  EXPECT_EQ(refused({{"do_center_crop", true}}), "do_center_crop");
  EXPECT_EQ(refused({{"image_processor_type", "CLIPImageProcessor"}}), "image_processor_type");
  const Json object = Json::object();
  EXPECT_EQ(refused(object, {{"patch_size", 2}, {"spatial_merge_size", 2}}), "");
  EXPECT_EQ(refused(object, {{"patch_size", 4}}), "patch_size");
  EXPECT_EQ(refused(object, {{"spatial_merge_size", 1}}), "spatial_merge_size");
  EXPECT_EQ(refused(object, {{"image_break_token", "\n"}}), "image_break_token");
}

}  // namespace
}  // namespace valora::media
