// Configurations and positions: the values read, and refusals that name the key.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "models/families/families.h"
#include "models/families/number_words.h"
#include "models/registry.h"
#include "models/spec/load_error.h"
#include "models/testing/tiny_towers.h"
#include "models/towers/qwen2_5_vl_vision.h"
#include "models/towers/siglip_vision.h"
#include "models/towers/visual_batch.h"

namespace valora::models {
namespace {

Json qwen2() {
  return {{"architectures", {"Qwen2ForCausalLM"}},
          {"vocab_size", 10},
          {"hidden_size", 8},
          {"intermediate_size", 6},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"max_position_embeddings", 64}};
}

Json qwen2_vl() {
  Json json = qwen2();
  json["architectures"] = {"Qwen2VLForConditionalGeneration"};
  json["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {1, 1, 0}}};
  json["vision_config"] = {
      {"depth", 1}, {"embed_dim", 8}, {"num_heads", 2}, {"hidden_size", 8}, {"patch_size", 2}};
  return json;
}

Json qwen2_5_vl() {
  Json json = qwen2_vl();
  json["architectures"] = {"Qwen2_5_VLForConditionalGeneration"};
  json["vision_config"] = {{"depth", 2},           {"hidden_size", 8}, {"num_heads", 2},
                           {"out_hidden_size", 8}, {"patch_size", 2},  {"intermediate_size", 6},
                           {"window_size", 8}};
  return json;
}

Json llama() {
  Json json = qwen2();
  json["architectures"] = {"LlamaForCausalLM"};
  return json;
}

Json llava() {
  Json text = llama(), vision{{"hidden_size", 8},
                              {"num_attention_heads", 2},
                              {"num_hidden_layers", 3},
                              {"image_size", 8},
                              {"patch_size", 2}};
  return {{"architectures", {"LlavaForConditionalGeneration"}},
          {"text_config", text},
          {"vision_config", vision}};
}

std::string refusal(const Json& json) {
  const ConfigReader config(json, "config.json");
  const auto family = find_family(config);
  if (!family.ok()) return family.error().message;
  const auto spec = read_model_spec(**family, config);
  return spec.ok() ? "accepted" : spec.error().message;
}

TEST(ModelSpec, EachFamilyIsFoundByItsModelType) {
  const std::set<std::string> by_other_keys = {"LlavaForConditionalGeneration", "QWenLMHeadModel"};
  for (const Family& family : families()) {
    ASSERT_FALSE(family.model_type.empty()) << family.architecture;
    const auto found =
        find_family(ConfigReader({{"model_type", family.model_type}}, "config.json"));
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ((*found)->architecture, family.architecture);
    if (!by_other_keys.contains(family.architecture)) {
      EXPECT_EQ(*found, &family);
    }
  }
  const auto unknown = find_family(ConfigReader({{"model_type", "mamba"}}, "config.json"));
  EXPECT_NE(unknown.error().message.find("qwen3_5_moe_text"), std::string::npos)
      << unknown.error().message;
}

TEST(ModelSpec, RefusalNamesKeyBeforeAllocating) {
  EXPECT_EQ(refusal(qwen2()), "accepted");
  EXPECT_EQ(refusal(qwen2_vl()), "accepted");
  const auto refused = [](Json json, const char* path, const Json& value, const char* word) {
    json[Json::json_pointer(path)] = value;
    const std::string why = refusal(json);
    EXPECT_NE(why.find(word), std::string::npos) << path << ' ' << value << ": " << why;
  };
  refused(qwen2(), "/architectures", {"Other"}, "Other is not supported");
  refused(qwen2(), "/architectures", nullptr, "architectures");
  Json untyped = qwen2();
  untyped.erase("architectures");
  untyped["model_type"] = "qwen2";
  EXPECT_EQ(refusal(untyped), "accepted");
  untyped["model_type"] = "mamba";
  EXPECT_NE(refusal(untyped).find("architectures"), std::string::npos);
  refused(qwen2(), "/hidden_size", "8", "hidden_size");
  refused(qwen2(), "/hidden_size", 0, "hidden_size");
  refused(qwen2(), "/hidden_size", 9, "hidden_size");
  refused(qwen2(), "/vocab_size", int64_t{1} << 40, "vocab_size");
  refused(qwen2(), "/num_hidden_layers", 1'000'000'000, "num_hidden_layers");
  refused(qwen2(), "/num_key_value_heads", 3, "num_key_value_heads");
  refused(qwen2(), "/head_dim", 3, "odd");
  refused(qwen2(), "/head_dim", 1 << 30, "head_dim");
  refused(qwen2_vl(), "/vision_config/in_channels", 4, "in_channels");
  refused(qwen2(), "/hidden_act", "relu", "relu");
  refused(qwen2(), "/quantization_config", Json::object(), "quantization_config");
  refused(qwen2(), "/quantization_config", {{"quant_method", "hqq"}}, "hqq");
  refused(qwen2(), "/rope_scaling", {{"rope_type", "yarn"}}, "yarn");
  refused(qwen2(), "/rope_scaling", {{"type", "su"}}, "su");
  refused(qwen2(), "/rope_scaling", {{"type", "yarn"}, {"factor", 4}, {"attention_factor", 0}},
          "attention_factor");
  refused(qwen2(), "/rope_scaling", {{"type", "longrope"}, {"short_factor", {1}}}, "short_factor");
  refused(qwen2(), "/rope_scaling", {{"type", "longrope"}, {"short_factor", {1, 1}}},
          "long_factor");
  refused(qwen2(), "/rope_scaling", {{"type", "dynamic"}}, "factor");
  refused(qwen2(), "/partial_rotary_factor", 0.5, "partial_rotary_factor");
  refused(qwen2(), "/per_layer_config", {{"0", {{"sliding_window", 8}}}}, "per_layer_config");
  refused(qwen2(), "/pruned_heads", {{"0", {1}}}, "pruned_heads");
  refused(qwen2(), "/tie_word_embeddings", "yes", "tie_word_embeddings");
  refused(qwen2(), "/rope_theta", 0, "rope_theta");
  refused(qwen2_vl(), "/rope_scaling/mrope_section", {1, 1, 1}, "mrope_section");
  refused(qwen2_vl(), "/rope_scaling/mrope_section", {3, -1, 0}, "mrope_section");
  refused(qwen2_vl(), "/rope_scaling", nullptr, "mrope_section");
  refused(qwen2_vl(), "/vision_config", nullptr, "vision_config");
  refused(qwen2_vl(), "/vision_config/hidden_size", 9, "hidden_size");
  refused(qwen2_vl(), "/vision_config/depth", 1'000'000'000, "depth");
  refused(qwen2_vl(), "/vision_config/spatial_merge_size", 1 << 30, "spatial_merge_size");
  refused(qwen2_vl(), "/vision_config/patch_size", 1 << 30, "patch_size");
  refused(qwen2_vl(), "/vision_config/mlp_ratio", 1e300, "mlp_ratio");
  refused(qwen2_vl(), "/vision_config/hidden_act", "relu", "relu");
  refused(qwen2_vl(), "/vision_config/rope_parameters", {{"rope_theta", 5000.0}}, "rope_theta");
  refused(qwen2_vl(), "/vision_config/rope_parameters", {{"rope_type", "yarn"}}, "without scaling");
  for (const Json& json : {qwen2_5_vl(), llama(), llava()}) EXPECT_EQ(refusal(json), "accepted");
  refused(qwen2_5_vl(), "/vision_config/out_hidden_size", 9, "hidden_size");
  refused(qwen2_5_vl(), "/vision_config/window_size", 3, "window_size");
  refused(qwen2_5_vl(), "/vision_config/tokens_per_second", 0, "tokens_per_second");
  refused(qwen2_5_vl(), "/vision_config/num_heads", 4, "head size");
  refused(llama(), "/rope_scaling", {{"rope_type", "llama3"}, {"factor", 8}}, "low_freq_factor");
  refused(llama(), "/rope_scaling", {{"rope_type", "linear"}}, "factor");
  refused(llava(), "/text_config", nullptr, "text_config");
  refused(llava(), "/text_config/model_type", "mistral", "mistral");
  refused(llava(), "/vision_config/model_type", "siglip_vision_model", "siglip");
  refused(llava(), "/vision_feature_layer", 4, "vision_feature_layer");
  refused(llava(), "/vision_feature_layer", {-5}, "vision_feature_layer");
  refused(llava(), "/vision_feature_layer", Json::array(), "vision_feature_layer");
  refused(llava(), "/vision_feature_select_strategy", "half", "half");
  refused(llava(), "/projector_hidden_act", "relu", "relu");
  refused(llava(), "/vision_config/patch_size", 9, "patch_size");
}

ModelSpec spec_of(const Json& json) {
  const ConfigReader config(json, "config.json");
  return read_model_spec(**find_family(config), config).value();
}

TEST(ModelSpec, RopeScalingSetsMaximumLength) {
  Json json = qwen2();
  EXPECT_EQ(spec_of(json).max_positions, 64);
  json["rope_scaling"] = {
      {"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}};
  EXPECT_EQ(spec_of(json).max_positions, 256) << "as Qwen documents it";
  json["rope_scaling"].erase("original_max_position_embeddings");
  EXPECT_EQ(spec_of(json).max_positions, 64);
  EXPECT_EQ(spec_of(json).rope_change.beyond, 0);
  json["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 4.0}};
  EXPECT_EQ(spec_of(json).max_positions, 256);
  EXPECT_EQ(spec_of(json).rope_change.beyond, 64);
  EXPECT_TRUE(spec_of(json).rope_change.each);
  json["rope_scaling"] = nullptr;
  json["rope_parameters"] = {{"rope_type", "longrope"},
                             {"rope_theta", 1e4},
                             {"original_max_position_embeddings", 16},
                             {"short_factor", {1, 1}},
                             {"long_factor", {1, 1}}};
  EXPECT_EQ(spec_of(json).max_positions, 64);
  EXPECT_EQ(spec_of(json).rope_change.beyond, 16);
  EXPECT_FALSE(spec_of(json).rope_change.each);
}

TEST(ModelSpec, FlatAndNestedConfigsAreEquivalent) {
  const Json flat = qwen2_vl();
  Json nested = {{"architectures", flat["architectures"]},
                 {"vision_config", flat["vision_config"]},
                 {"text_config", flat}};
  nested["text_config"].erase("vision_config");
  nested["text_config"].erase("rope_scaling");
  nested["text_config"]["rope_parameters"] = {
      {"rope_type", "default"}, {"mrope_section", {1, 1, 0}}, {"rope_theta", 5000.0}};
  const ModelSpec a = spec_of(flat), b = spec_of(nested);
  EXPECT_EQ(a.hidden, b.hidden);
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_EQ(a.modules.modules().size(), b.modules.modules().size());
}

TEST(ModelSpec, ListsModulesThatTakeNoAdapter) {
  const ConfigReader config(qwen2_vl(), "config.json");
  const ModelSpec spec = read_model_spec(**find_family(config), config).value();
  for (const char* name : {"model.embed_tokens", "model.language_model.embed_tokens",
                           "visual.patch_embed.proj", "lm_head"}) {
    const auto index = spec.modules.find(name);
    ASSERT_TRUE(index) << name;
    EXPECT_NE(spec.modules.modules()[*index].kind, adapters::ModuleKind::kLinear) << name;
  }
  const auto q = spec.modules.find("model.layers.0.self_attn.q_proj");
  ASSERT_TRUE(q);
  EXPECT_EQ(*q, 0) << "the decoder's linears come first";
  EXPECT_TRUE(spec.modules.modules()[*q].kind == adapters::ModuleKind::kLinear);
  const auto merger = spec.modules.find("visual.merger.mlp.0");
  ASSERT_TRUE(merger);
  EXPECT_TRUE(spec.modules.modules()[*merger].kind == adapters::ModuleKind::kLinear &&
              spec.modules.modules()[*merger].visual);
}

TEST(ModelSpec, Qwen3VlFeedsFirstLayersAndMarksFrames) {
  const Json json = testing::qwen3_vl().config;
  const ConfigReader config(json, "config.json");
  const ModelSpec spec = read_model_spec(**find_family(config), config).value();
  EXPECT_EQ(spec.visual_levels, 1);
  ASSERT_TRUE(spec.frame_marks);
  EXPECT_EQ(spec.frame_marks->end, spec.frame_marks->begin + 1);
  const auto deep = spec.modules.find("visual.deepstack_merger_list.0.linear_fc2");
  ASSERT_TRUE(deep);
  EXPECT_TRUE(spec.modules.modules()[*deep].kind == adapters::ModuleKind::kLinear &&
              spec.modules.modules()[*deep].visual);
  const auto refused = [&](const char* path, const Json& value, const char* word) {
    Json changed = json;
    changed[Json::json_pointer(path)] = value;
    const std::string why = refusal(changed);
    EXPECT_NE(why.find(word), std::string::npos) << path << ' ' << value << ": " << why;
  };
  refused("/vision_config/deepstack_visual_indexes", {1, 0}, "deepstack_visual_indexes");
  refused("/vision_config/deepstack_visual_indexes", {2}, "deepstack_visual_indexes");
  refused("/vision_config/num_position_embeddings", 8, "num_position_embeddings");
  refused("/vision_config/out_hidden_size", 9, "hidden_size");
  refused("/rope_theta", nullptr, "rope_theta");
  refused("/rope_scaling", nullptr, "mrope_section");
}

TEST(ModelSpec, NonStringDtypeIsRefused) {
  const auto refused = [](const Json& json) {
    return !resolve_dtype(std::nullopt, ConfigReader(json, "config.json"), at::kFloat, at::kCPU)
                .ok();
  };
  EXPECT_FALSE(refused({{"torch_dtype", "bfloat16"}}));
  EXPECT_TRUE(refused({{"torch_dtype", 16}}));
  EXPECT_TRUE(refused({{"text_config", {{"dtype", {1}}}}}));
}

TEST(ModelSpec, LlavaAcceptsNamesOfAllReleases) {
  const ConfigReader config(llava(), "config.json");
  const ModelSpec spec = read_model_spec(**find_family(config), config).value();
  for (const auto& [older, newest] : std::vector<std::pair<std::string, std::string>>{
           {"language_model.model.layers.0.mlp.up_proj",
            "model.language_model.layers.0.mlp.up_proj"},
           {"vision_tower.vision_model.encoder.layers.2.mlp.fc1",
            "model.vision_tower.vision_model.encoder.layers.2.mlp.fc1"},
           {"multi_modal_projector.linear_1", "model.multi_modal_projector.linear_1"},
           {"language_model.lm_head", "lm_head"},
           // transformers 5
           {"model.vision_tower.encoder.layers.2.mlp.fc1",
            "model.vision_tower.vision_model.encoder.layers.2.mlp.fc1"},
           {"vision_tower.encoder.layers.2.mlp.fc1",
            "model.vision_tower.vision_model.encoder.layers.2.mlp.fc1"},
           // the language model alone
           {"model.layers.0.mlp.up_proj", "model.language_model.layers.0.mlp.up_proj"}}) {
    ASSERT_TRUE(spec.modules.find(older)) << older;
    EXPECT_EQ(spec.modules.find(older), spec.modules.find(newest));
  }
  EXPECT_FALSE(spec.modules.find("model.encoder.layers.2.mlp.fc1"));
}

TEST(ModelSpec, SmolVlmUsesIdefics3Family) {
  for (const auto& [type, name] : {std::pair{"idefics3", "Idefics3ForConditionalGeneration"},
                                   {"smolvlm", "SmolVLMForConditionalGeneration"}}) {
    Json json = testing::idefics3().config;
    json.erase("architectures");
    json["model_type"] = type;
    const ConfigReader config(json, "config.json");
    const Family& family = **find_family(config);
    const ModelSpec spec = read_model_spec(family, config).value();
    EXPECT_EQ(spec.architecture, name);
    EXPECT_EQ(spec.image_token, 128257);
    EXPECT_EQ(spec.video_token.has_value(), spec.architecture.starts_with("SmolVLM"));
    EXPECT_NE(family.no_videos.find(name), std::string::npos) << family.no_videos;
    const auto connector = spec.modules.find("model.connector.modality_projection.proj");
    ASSERT_TRUE(connector);
    EXPECT_TRUE(spec.modules.modules()[*connector].visual);
    EXPECT_EQ(spec.modules.modules()[*connector].in, 4 * testing::kWidth);
    // The language model alone.
    EXPECT_EQ(spec.modules.find("model.layers.0.mlp.up_proj"),
              spec.modules.find("model.text_model.layers.0.mlp.up_proj"));
  }
  Json json = testing::idefics3().config;
  json["text_config"]["model_type"] = "mistral";
  EXPECT_NE(refusal(json).find("mistral"), std::string::npos);
}

TEST(Idefics3Text, TilesFollowPositionMarkersThenWholePicture) {
  media::VisualInput image;
  const auto text = smolvlm_family().media_text;
  EXPECT_EQ(text(image), "<fake_token_around_image><global-img><image><fake_token_around_image>");
  image.tile_rows = 2, image.tile_columns = 1;
  EXPECT_EQ(text(image),
            "<fake_token_around_image><row_1_col_1><image>\n"
            "<fake_token_around_image><row_2_col_1><image>\n"
            "\n<fake_token_around_image><global-img><image><fake_token_around_image>");
}

TEST(Idefics3Text, FramesFollowTimestamps) {
  media::VisualInput video;
  video.kind = media::MediaKind::kVideo;
  video.grid_t = 2;
  video.patch_times = {0.9, 61.5};
  const auto text = smolvlm_family().media_text;
  const std::string frames =
      " [H:MM:SS] video.\n"
      "\nFrame from 00:00:<fake_token_around_image><global-img><image><fake_token_around_image>"
      "\nFrame from 01:01:<fake_token_around_image><global-img><image><fake_token_around_image>"
      "\n\n";
  const std::string begin = "You are provided the following series of two frames from a ";
  EXPECT_EQ(text(video), begin + "0:01:01" + frames) << "a list of frames";
  video.seconds = 2 * 86400 + 3 * 3600 + 5.5;
  EXPECT_EQ(text(video), begin + "2 days, 3:00:05" + frames);
}

TEST(ModelSpec, InternVlAcceptsOlderAndCustomCodeNames) {
  const auto spec_of = [](Json json) {
    const ConfigReader config(std::move(json), "config.json");
    return read_model_spec(**find_family(config), config).value();
  };
  const ModelSpec spec = spec_of(testing::internvl().config),
                  older = spec_of(testing::internvl_chat().config);
  EXPECT_EQ(spec.image_token, 151667);
  EXPECT_EQ(spec.video_token, kTokenByName);
  for (const auto& [before, newest] : std::map<std::string, std::string>{
           {"language_model.model.layers.0.mlp.up_proj",
            "model.language_model.layers.0.mlp.up_proj"},
           {"vision_tower.encoder.layer.1.mlp.fc1", "model.vision_tower.encoder.layer.1.mlp.fc1"},
           {"multi_modal_projector.linear_2", "model.multi_modal_projector.linear_2"},
           {"model.layers.0.mlp.up_proj", "model.language_model.layers.0.mlp.up_proj"}}) {
    ASSERT_TRUE(spec.modules.find(before)) << before;
    EXPECT_EQ(spec.modules.find(before), spec.modules.find(newest));
  }
  EXPECT_EQ(older.image_token, kTokenByName);
  const auto qkv = older.modules.find("vision_model.encoder.layers.1.attn.qkv");
  ASSERT_TRUE(qkv);
  EXPECT_EQ(older.modules.modules()[*qkv].out, 3 * testing::kWidth);
  EXPECT_TRUE(older.modules.find("mlp1.3"));
  EXPECT_EQ(older.modules.find("model.layers.0.mlp.up_proj"),
            older.modules.find("language_model.model.layers.0.mlp.up_proj"));
}

TEST(ModelSpec, InternVlRefusesUnsupportedSettingsByName) {
  const auto refused = [](Json json, const char* part, const char* key, Json value) {
    (*part ? json[part] : json)[key] = std::move(value);
    return refusal(json);
  };
  const Json newest = testing::internvl().config, older = testing::internvl_chat().config;
  for (const auto& [part, key, value] : std::vector<std::tuple<const char*, const char*, Json>>{
           {"", "downsample_ratio", 0.3},
           {"", "vision_feature_layer", {-1, 1}},
           {"", "vision_feature_layer", 3},
           {"", "vision_feature_select_strategy", "full"},
           {"text_config", "model_type", "gpt_oss"},
           {"vision_config", "norm_type", "group_norm"},
           {"vision_config", "image_size", {28, 14}},
           {"vision_config", "model_type", "siglip_vision_model"}}) {
    const std::string why = refused(newest, part, key, value);
    EXPECT_NE(why.find(value.is_string() ? value.get<std::string>() : key), std::string::npos)
        << key << ": " << why;
  }
  for (const auto& [part, key, value] : std::vector<std::tuple<const char*, const char*, Json>>{
           {"", "use_llm_lora", 16},
           {"", "pad2square", true},
           {"", "ps_version", "v3"},
           {"llm_config", "model_type", "phi3"}}) {
    const std::string why = refused(older, part, key, value);
    EXPECT_NE(why.find(value.is_string() ? value.get<std::string>() : key), std::string::npos)
        << key << ": " << why;
  }
}

TEST(InternVlText, TilesAreContiguousAndFramesNumbered) {
  media::VisualInput input;
  const auto text = internvl_family().media_text;
  input.grid_t = 2;
  EXPECT_EQ(text(input), "<img><IMG_CONTEXT><IMG_CONTEXT></img>");
  input.kind = media::MediaKind::kVideo;
  EXPECT_EQ(text(input), "Frame1: <img><IMG_CONTEXT></img>\nFrame2: <img><IMG_CONTEXT></img>");
}

TEST(NumberWords, SpellsNumbersInEnglish) {
  for (const auto& [number, words] :
       std::map<int, std::string>{{1, "one"},
                                  {13, "thirteen"},
                                  {20, "twenty"},
                                  {64, "sixty-four"},
                                  {100, "one hundred"},
                                  {105, "one hundred and five"},
                                  {768, "seven hundred and sixty-eight"},
                                  {1001, "one thousand and one"},
                                  {1234, "one thousand, two hundred and thirty-four"},
                                  {12000, "twelve thousand"}})
    EXPECT_EQ(number_words(number), words);
}

TEST(SiglipPlaces, PatchesMapEvenlyToPositions) {
  const auto places = [](int64_t count, int64_t side) {
    const at::Tensor made = places_along(count, side);
    return std::vector<int64_t>(made.const_data_ptr<int64_t>(),
                                made.const_data_ptr<int64_t>() + made.numel());
  };
  EXPECT_EQ(places(4, 6), (std::vector<int64_t>{0, 1, 3, 4}));
  EXPECT_EQ(places(6, 4), (std::vector<int64_t>{0, 0, 1, 2, 2, 3}));
  EXPECT_EQ(places(1, 9), (std::vector<int64_t>{0}));
  for (const int64_t side : {16, 26, 27, 32, 70})  // sides of published models
    for (int64_t i = 0; i < side; ++i) EXPECT_EQ(places(side, side)[size_t(i)], i);
  EXPECT_EQ(places(49, 49)[7], 6) << "where the product of floats is below the boundary";
}

media::VisualInput grid(int t, int h, int w) {
  media::VisualInput input;
  input.grid_t = t, input.grid_h = h, input.grid_w = w;
  return input;
}

TEST(WindowOrder, EdgeWindowsAreSmallerAndNeverSpanFrames) {
  const media::VisualInput image = grid(1, 4, 6),
                           video = grid(2, 2, 2);  // after merging 2 × 3, and twice 1 × 1
  const std::vector<VisualItem> items{{&image, {}}, {&video, {}}};
  const WindowOrder windows = window_order(items, 2, 2);
  EXPECT_EQ(windows.order, (std::vector<int64_t>{0, 1, 3, 4, 2, 5, 6, 7}));
  EXPECT_EQ(windows.ends, (std::vector<int64_t>{16, 24, 28, 32})) << "in patches";
}

TEST(VisualBatch, SegmentsCoverItemRows) {
  const ops::AdapterWeights a, b;
  const media::VisualInput input = grid(1, 2, 2);
  const std::vector<VisualItem> items{
      {&input, {}}, {&input, {{&a, 2}}}, {&input, {{&a, 1}, {&b, -1}}}};
  const std::vector<int64_t> rows{3, 4, 5};
  const Adaptation adaptation = item_adaptation(items, rows);
  const auto segments = adaptation.lora.segments();
  ASSERT_EQ(segments.size(), 3);
  EXPECT_EQ(segments[0].token_begin, 3);
  EXPECT_EQ(segments[0].token_end, 7);
  EXPECT_EQ(segments[0].coefficient, 2);
  for (int i : {1, 2}) EXPECT_EQ(segments[i].token_begin, 7);
  EXPECT_EQ(&adaptation.lora.adapter(2), &b);
  const auto parts = split_items(at::arange(12).view({12, 1}), rows);
  EXPECT_EQ(parts[2].size(0), 5);
  EXPECT_EQ(parts[2][0][0].item<int>(), 7);
}

TEST(VisualBatch, WrongPatchSizeIsRefused) {
  media::VisualInput input = grid(1, 1, 1);
  input.patch_dim = 4;
  input.patches = std::vector<float>{1, 2, 3, 4};
  const std::vector<VisualItem> items{{&input, {}}};
  check_patches(items, 4);
  EXPECT_EQ(patch_rows(items, 0, 1, at::kFloat, at::kCPU)[0][3].item<float>(), 4);
  EXPECT_THROW(check_patches(items, 5), c10::Error);
}

TEST(MropePositions, VideoTimeCountsIfModelRequiresIt) {
  const ConfigReader config(qwen2_5_vl(), "config.json");
  const Family& family = **find_family(config);
  const ModelSpec spec = read_model_spec(family, config).value();  // 4 positions per second
  auto video = std::make_shared<media::VisualInput>(grid(3, 2, 2));
  video->kind = media::MediaKind::kVideo;
  video->seconds_per_grid = 0.6;
  const std::vector<VisualSpan> visual{{1, 3, video}};
  const Positions positions = family.positions(spec, 5, visual);
  EXPECT_EQ(std::vector<int32_t>(positions.prompt.begin(), positions.prompt.begin() + 5),
            (std::vector<int32_t>{0, 1, 3, 5, 6}))
      << "0, 2.4 and 4.8 behind where it begins";
  EXPECT_EQ(positions.prompt[5 + 2], 1) << "the height has no time";
  EXPECT_EQ(positions.delta, 2);
}

}  // namespace
}  // namespace valora::models
