// Configurations of LLaVA-NeXT, LLaVA-OneVision, Pixtral and Mistral 3, and the rows of their
// pictures.
#include <gtest/gtest.h>

#include "models/families/families.h"
#include "models/families/llava_model.h"
#include "models/testing/tiny_towers.h"

namespace valora::models {
namespace {

std::string llava_refusal(const Json& json) {
  const ConfigReader config(json, "config.json");
  const auto family = find_family(config);
  if (!family.ok()) return family.error().message;
  const auto spec = read_model_spec(**family, config);
  return spec.ok() ? "accepted" : spec.error().message;
}

void expect_refused(Json json, const char* path, const Json& value, const char* word) {
  json[Json::json_pointer(path)] = value;
  const std::string why = llava_refusal(json);
  EXPECT_NE(why.find(word), std::string::npos) << path << ' ' << value << ": " << why;
}

TEST(LlavaFamilies, LlavaNextAndOnevisionAcceptLlavaNames) {
  for (const testing::TinyTower& tower : {testing::llava_next(), testing::llava_onevision()}) {
    const ConfigReader config(tower.config, "config.json");
    const ModelSpec spec = read_model_spec(**find_family(config), config).value();
    const bool videos = spec.video_token.has_value();
    EXPECT_EQ(spec.image_token, videos ? 151646 : 32000);
    EXPECT_EQ(videos, spec.architecture.starts_with("LlavaOnevision"));
    EXPECT_EQ(spec.default_eos.has_value(), !videos) << "Qwen2's class has none";
    const auto fc1 = spec.modules.find("model.vision_tower.vision_model.encoder.layers.1.mlp.fc1");
    ASSERT_TRUE(fc1);
    for (const char* older : {"vision_tower.vision_model.", "model.vision_tower.", "vision_tower."})
      EXPECT_EQ(spec.modules.find(std::string(older) + "encoder.layers.1.mlp.fc1"), fc1);
  }
  Json headed = testing::llava_onevision().config;
  headed["vision_config"].erase("vision_use_head");
  const ConfigReader config(headed, "config.json");
  EXPECT_TRUE(read_model_spec(**find_family(config), config)
                  ->modules.find("vision_tower.vision_model.head.mlp.fc1"))
      << "the class's default";
}

TEST(LlavaFamilies, LlavaNextRefusesUnsupportedSettingsByName) {
  const Json next = testing::llava_next().config, onevision = testing::llava_onevision().config;
  EXPECT_EQ(llava_refusal(next), "accepted");
  EXPECT_EQ(llava_refusal(onevision), "accepted");
  expect_refused(next, "/vision_feature_select_strategy", "full", "select_strategy");
  expect_refused(onevision, "/vision_feature_select_strategy", "default", "select_strategy");
  expect_refused(next, "/text_config/model_type", "gemma", "llama, mistral, qwen2");
  expect_refused(onevision, "/text_config/model_type", "llama", "only qwen2");
  expect_refused(onevision, "/vision_config/model_type", "clip_vision_model", "clip_vision_model");
  for (const Json& wrong : {Json{{10, 25}}, Json{{10}}, Json::array(), Json{{0, 10}},
                            Json{{"a", 10}}, Json{{16380, 16380}}, Json(5)})
    expect_refused(next, "/image_grid_pinpoints", wrong, "image_grid_pinpoints");
  expect_refused(next, "/image_grid_pinpoints", nullptr, "image_grid_pinpoints");  // for 336 pixels
  for (const char* wrong : {"anyres", "pad", "anyres_max_0", "anyres_max_9x", "anyres_max_"})
    expect_refused(onevision, "/vision_aspect_ratio", wrong, "vision_aspect_ratio");
}

TEST(LlavaFamilies, PixtralUsesLlavaWithPixtralTower) {
  for (const testing::TinyTower& tower : {testing::pixtral(), testing::mistral3()}) {
    const ConfigReader config(tower.config, "config.json");
    const Family& family = **find_family(config);
    EXPECT_EQ(family.image_placeholder, "[IMG]");
    const ModelSpec spec = read_model_spec(family, config).value();
    EXPECT_EQ(spec.image_token, 10);
    const auto down = spec.modules.find(tower.adapted);
    ASSERT_TRUE(down);
    EXPECT_EQ(spec.modules.find(tower.adapted.substr(6)), down) << "without model.";
    EXPECT_EQ(spec.modules.find("multi_modal_projector.patch_merger.merging_layer").has_value(),
              spec.visual_merge == 2);
  }
  const ConfigReader clip(testing::llava().config, "config.json");
  EXPECT_EQ((*find_family(clip))->image_placeholder, "<image>");
  Json odd = testing::llava().config;
  odd["vision_config"] = 5;
  EXPECT_NE(llava_refusal(odd).find("vision_config"), std::string::npos);
}

TEST(LlavaFamilies, PixtralRefusesUnsupportedSettingsByName) {
  const Json pixtral = testing::pixtral().config, mistral3 = testing::mistral3().config;
  EXPECT_EQ(llava_refusal(pixtral), "accepted");
  EXPECT_EQ(llava_refusal(mistral3), "accepted");
  expect_refused(pixtral, "/vision_feature_select_strategy", "default", "select_strategy");
  expect_refused(mistral3, "/vision_feature_layer", {-1, 1}, "vision_feature_layer");
  expect_refused(mistral3, "/spatial_merge_size", 65, "spatial_merge_size");
  for (const Json& json : {pixtral, mistral3}) {
    expect_refused(json, "/text_config/model_type", "ministral3", "only mistral");
    expect_refused(json, "/vision_config/head_dim", 4, "head_dim");
    expect_refused(json, "/vision_config/num_attention_heads", 8, "head size");
    expect_refused(json, "/vision_config/rope_parameters", {{"rope_type", "yarn"}}, "yarn");
    expect_refused(json, "/vision_config/rope_theta", 0, "rope_theta");
  }
  Json ignored = mistral3;
  ignored["vision_feature_select_strategy"] = "default";
  EXPECT_EQ(llava_refusal(ignored), "accepted") << "a key of other classes";
}

TEST(PixtralText, RowsAreSeparatedByBreakTokens) {
  media::VisualInput input;
  const auto text = mistral3_family().media_text;
  EXPECT_EQ(text(input), "[IMG][IMG_END]");
  input.token_rows = 3;
  EXPECT_EQ(text(input), "[IMG][IMG_BREAK][IMG][IMG_BREAK][IMG][IMG_END]");
}

TEST(LlavaRows, TilesAreJoinedUnpaddedAndResized) {
  // Two tiles of 2 x 2 side by side; each value is its own index.
  const at::Tensor x = at::arange(12, at::kFloat).view({12, 1}), newline = at::full({1}, -1.0f);
  media::VisualInput input;
  input.grid_t = 3, input.tile_rows = 1, input.tile_columns = 2;
  const auto rows = [&] {
    const at::Tensor made = with_newlines(x, input, 2, newline);
    return std::vector<float>(made.const_data_ptr<float>(),
                              made.const_data_ptr<float>() + made.numel());
  };
  input.unpadded = {0, 1, 2, 2}, input.tokens = 10;
  EXPECT_EQ(rows(), (std::vector<float>{0, 1, 2, 3, 5, 8, -1, 7, 10, -1}));
  input.unpadded = {0, 0, 1, 2}, input.tokens = 7;
  EXPECT_EQ(rows(), (std::vector<float>{0, 1, 2, 3, 5.5, 9.5, -1}));
  input.tokens = 8;
  EXPECT_THROW(rows(), c10::Error);
  input.kind = media::MediaKind::kVideo, input.tokens = 4;
  EXPECT_EQ(rows(), (std::vector<float>{1.5, 5.5, 9.5, -1}));
}

}  // namespace
}  // namespace valora::models
