#include <gtest/gtest.h>

#include "media/processors/processor.h"
#include "media/testing/pictures.h"

namespace valora::media {
namespace {

using testing::make_picture;

constexpr SquareTarget kSquare{12, 3, 4};

Json gemma3_json(const Json& more = Json::object()) {
  Json json{
      {"size", {{"height", 12}, {"width", 12}}}, {"do_rescale", false}, {"do_normalize", false}};
  json.update(more);
  return json;
}

TEST(Gemma3Processor, CutsPatchesInReadingOrder) {
  const Image picture = make_picture(12, 12);
  const auto processor = make_gemma3_processor({gemma3_json(), nullptr, nullptr}, kSquare);
  ASSERT_TRUE(processor.ok()) << processor.error().message;
  const auto input = (*processor)->image(picture);
  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ(input->grid_t, 1);
  EXPECT_EQ(input->grid_h, 4);
  EXPECT_EQ(input->grid_w, 4);
  EXPECT_EQ(input->tokens, 4);
  const auto first = [&](int patch) { return input->patches[size_t(patch) * 27]; };
  EXPECT_EQ(first(1), picture.rgb[3 * 3]);
  EXPECT_EQ(first(4), picture.rgb[3 * 12 * 3]) << "the second row";
  EXPECT_EQ((*processor)->image_tokens(1000, 2).value(), 4);
  EXPECT_FALSE((*processor)->video({picture}, 1).ok());
}

TEST(Gemma3Processor, NamesSettingsThatDoNotFit) {
  const auto refused = [](const Json& image, const Json& both = nullptr) {
    const auto made = make_gemma3_processor({gemma3_json(image), nullptr, both}, kSquare);
    return made.ok() ? "" : made.error().param;
  };
  EXPECT_EQ(refused({{"pan_and_scan_max_num_crops", 4}, {"do_pan_and_scan", nullptr}}), "");
  EXPECT_EQ(refused({{"do_pan_and_scan", true}}), "do_pan_and_scan");
  EXPECT_EQ(refused({{"do_resize", false}}), "do_resize");
  EXPECT_EQ(refused({{"size", {{"height", 12}, {"width", 24}}}}), "size");
  EXPECT_EQ(refused({{"size", {{"longest_edge", 12}}}}), "size");
  EXPECT_EQ(refused({{"resample", 0}}), "resample");
  EXPECT_EQ(refused({{"image_processor_type", "CLIPImageProcessor"}}), "image_processor_type");
  EXPECT_EQ(refused(Json::object(), {{"image_seq_length", 4}}), "");
  EXPECT_EQ(refused(Json::object(), {{"image_seq_length", 9}}), "image_seq_length");
}

}  // namespace
}  // namespace valora::media
