// Configurations, weights and positions: what is read, and what is refused with its name.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "base/testing/safetensors_text.h"
#include "base/testing/temp_dir.h"
#include "models/load_error.h"
#include "models/qwen2_5_vl_vision.h"
#include "models/registry.h"
#include "models/rotary.h"
#include "models/visual_batch.h"

namespace valora::models {
namespace {

using valora::testing::f32_tensor;
using valora::testing::safetensors_text;
using valora::testing::TempDir;

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

TEST(ModelSpec, RefusesByKeyBeforeMemoryIsTaken) {
  EXPECT_EQ(refusal(qwen2()), "accepted");
  EXPECT_EQ(refusal(qwen2_vl()), "accepted");
  const auto refused = [](Json json, const char* path, const Json& value, const char* word) {
    json[Json::json_pointer(path)] = value;
    const std::string why = refusal(json);
    EXPECT_NE(why.find(word), std::string::npos) << path << ' ' << value << ": " << why;
  };
  refused(qwen2(), "/architectures", {"Other"}, "Other is not supported");
  refused(qwen2(), "/architectures", nullptr, "architectures");
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
  refused(qwen2(), "/use_sliding_window", true, "use_sliding_window");
  refused(qwen2(), "/quantization_config", Json::object(), "quantization_config");
  refused(qwen2(), "/rope_scaling", {{"rope_type", "yarn"}}, "yarn");
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

TEST(ModelSpec, FlatAndNestedConfigurationsSayTheSame) {
  const Json flat = qwen2_vl();
  Json nested = {{"architectures", flat["architectures"]},
                 {"vision_config", flat["vision_config"]},
                 {"text_config", flat}};
  nested["text_config"].erase("vision_config");
  nested["text_config"].erase("rope_scaling");
  nested["text_config"]["rope_parameters"] = {
      {"rope_type", "default"}, {"mrope_section", {1, 1, 0}}, {"rope_theta", 5000.0}};
  const auto spec_of = [](const Json& json) {
    const ConfigReader config(json, "config.json");
    return read_model_spec(**find_family(config), config).value();
  };
  const ModelSpec a = spec_of(flat), b = spec_of(nested);
  EXPECT_EQ(a.hidden, b.hidden);
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_EQ(a.modules.modules().size(), b.modules.modules().size());
}

TEST(ModelSpec, NamesWhatAdaptersCannotBeServedOn) {
  const ConfigReader config(qwen2_vl(), "config.json");
  const ModelSpec spec = read_model_spec(**find_family(config), config).value();
  for (const char* name : {"model.embed_tokens", "model.language_model.embed_tokens",
                           "visual.patch_embed.proj", "lm_head"}) {
    const auto index = spec.modules.find(name);
    ASSERT_TRUE(index) << name;
    EXPECT_FALSE(spec.modules.modules()[*index].servable) << name;
  }
  const auto q = spec.modules.find("model.layers.0.self_attn.q_proj");
  ASSERT_TRUE(q);
  EXPECT_EQ(*q, 0) << "the decoder's linears come first";
  EXPECT_TRUE(spec.modules.modules()[*q].servable);
  const auto merger = spec.modules.find("visual.merger.mlp.0");
  ASSERT_TRUE(merger);
  EXPECT_TRUE(spec.modules.modules()[*merger].servable && spec.modules.modules()[*merger].visual);
}

TEST(ModelSpec, ADtypeThatIsNoTextIsAnError) {
  const auto refused = [](const Json& json) {
    return !resolve_dtype(std::nullopt, ConfigReader(json, "config.json"), at::kFloat, at::kCPU)
                .ok();
  };
  EXPECT_FALSE(refused({{"torch_dtype", "bfloat16"}}));
  EXPECT_TRUE(refused({{"torch_dtype", 16}}));
  EXPECT_TRUE(refused({{"text_config", {{"dtype", {1}}}}}));
}

TEST(ModelSpec, LlavaFindsTheNamesOfAllReleases) {
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

TEST(Rotary, OneAxisAndSections) {
  const at::Tensor positions = at::tensor({0, 1, 5, 0, 2, 7, 0, 3, 9}, at::kLong).view({3, 3});
  const Rotary text({.theta = 100}, 4, at::kCPU),
      mrope({.theta = 100, .sections = {1, 0, 1}}, 4, at::kCPU);
  EXPECT_EQ(text.axes(), 1);
  EXPECT_EQ(mrope.axes(), 3);
  const CosSin plain = text(positions.slice(0, 0, 1)), sections = mrope(positions);
  const double frequency[] = {1, 0.1};
  for (int t = 0; t < 3; ++t)
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR(plain.cos[t][i].item<float>(),
                  std::cos(positions[0][t].item<int64_t>() * frequency[i]), 1e-6);
      EXPECT_NEAR(sections.sin[t][i].item<float>(),
                  std::sin(positions[i == 0 ? 0 : 2][t].item<int64_t>() * frequency[i]), 1e-6);
    }
}

TEST(Rotary, LinearAndLlama3Scaling) {
  const at::Tensor one = at::ones({1, 1}, at::kLong);
  const auto angle = [&](const RotaryConfig& config, int i) {
    const CosSin at_one = Rotary(config, 6, at::kCPU)(one);
    return std::atan2(at_one.sin[0][i].item<double>(), at_one.cos[0][i].item<double>());
  };
  const RotaryConfig plain{.theta = 1000};  // frequencies 1, 0.1, 0.01: wavelengths 6.3, 63, 630
  RotaryConfig linear = plain, llama3 = plain;
  linear.linear_factor = 4;
  EXPECT_NEAR(angle(linear, 1), 0.1 / 4, 1e-7);
  llama3.llama3 =
      Llama3Scaling{.factor = 8, .low_factor = 1, .high_factor = 4, .original_positions = 100};
  EXPECT_NEAR(angle(llama3, 0), 1, 1e-6) << "shorter than 100 / 4: as it was";
  EXPECT_NEAR(angle(llama3, 2), 0.01 / 8, 1e-7) << "longer than 100";
  const double smooth = (100 / (2 * M_PI / 0.1) - 1) / 3;
  EXPECT_NEAR(angle(llama3, 1), (1 - smooth) * 0.1 / 8 + smooth * 0.1, 1e-7) << "between";
}

media::VisualInput grid(int t, int h, int w) {
  media::VisualInput input;
  input.grid_t = t, input.grid_h = h, input.grid_w = w;
  return input;
}

TEST(WindowOrder, EdgesAreSmallerAndFramesApart) {
  const media::VisualInput image = grid(1, 4, 6),
                           video = grid(2, 2, 2);  // merged by 2: 2 × 3, and twice 1 × 1
  const std::vector<VisualItem> items{{&image, {}}, {&video, {}}};
  const WindowOrder windows = window_order(items, 2, 2);
  EXPECT_EQ(windows.order, (std::vector<int64_t>{0, 1, 3, 4, 2, 5, 6, 7}));
  EXPECT_EQ(windows.ends, (std::vector<int64_t>{16, 24, 28, 32})) << "in patches";
}

TEST(VisualBatch, SegmentsCoverTheRowsOfTheirItems) {
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

TEST(VisualBatch, PatchesOfAnotherSizeAreRefused) {
  media::VisualInput input = grid(1, 1, 1);
  input.patch_dim = 4;
  input.patches = {1, 2, 3, 4};
  const std::vector<VisualItem> items{{&input, {}}};
  check_patches(items, 4);
  EXPECT_EQ(patch_rows(items, 0, 1, at::kFloat, at::kCPU)[0][3].item<float>(), 4);
  EXPECT_THROW(check_patches(items, 5), c10::Error);
}

TEST(MropePositions, AVideosTimeIsCountedWhereTheModelAsksForIt) {
  const ConfigReader config(qwen2_5_vl(), "config.json");
  const Family& family = **find_family(config);
  const ModelSpec spec = read_model_spec(family, config).value();  // 4 positions per second
  auto video = std::make_shared<media::VisualInput>(grid(3, 2, 2));
  video->kind = media::MediaKind::kVideo;
  video->seconds_per_grid = 0.6;
  const std::vector<VisualSpan> visual{{1, video}};
  const Positions positions = family.positions(spec, 5, visual);
  EXPECT_EQ(std::vector<int32_t>(positions.prompt.begin(), positions.prompt.begin() + 5),
            (std::vector<int32_t>{0, 1, 3, 5, 6}))
      << "0, 2.4 and 4.8 behind where it begins";
  EXPECT_EQ(positions.prompt[5 + 2], 1) << "the height has no time";
  EXPECT_EQ(positions.delta, 2);
}

TEST(MropePositions, AnImageSpreadsAndTextGoesOnBehindItsLargestSide) {
  const ConfigReader config(qwen2_vl(), "config.json");
  const Family& family = **find_family(config);
  const ModelSpec spec = read_model_spec(family, config).value();
  auto image = std::make_shared<media::VisualInput>();
  image->grid_t = 1, image->grid_h = 4, image->grid_w = 6,
  image->tokens = 6;  // 2 × 3 after merging
  const std::vector<VisualSpan> visual{{2, image}};
  const Positions positions = family.positions(spec, 10, visual);
  EXPECT_EQ(positions.prompt, (std::vector<int32_t>{0, 1, 2, 2, 2, 2, 2, 2, 5, 6, 0, 1, 2, 2, 2,
                                                    3, 3, 3, 5, 6, 0, 1, 2, 3, 4, 2, 3, 4, 5, 6}));
  EXPECT_EQ(positions.delta, -3);
}

class WeightsTest : public ::testing::Test {
 protected:
  std::string failure(Weights& weights, const std::string& name,
                      const std::vector<int64_t>& shape) {
    try {
      weights.get(name, shape);
      return "found";
    } catch (const LoadError& e) {
      return e.error().message;
    }
  }
  TempDir dir_;
};

TEST_F(WeightsTest, ShapesAliasesAndWhatIsUnused) {
  dir_.write("model.safetensors",
             safetensors_text({{"model.a.weight", f32_tensor({2, 3}, {1, 2, 3, 4, 5, 6})},
                               {"model.ids", {"I64", {1}, std::string(8, '\0')}},
                               {"spare", f32_tensor({1}, {7})}},
                              1));
  auto weights = Weights::open(dir_.path()).value();
  weights->set_aliases({{"model.", "model.language_model."}});
  EXPECT_EQ(weights->get("model.language_model.a.weight", {2, 3})[1][2].item<float>(), 6)
      << "not aligned in the file";
  EXPECT_NE(failure(*weights, "model.language_model.a.weight", {3, 2})
                .find("shape [2, 3], but the configuration requires [3, 2]"),
            std::string::npos);
  EXPECT_NE(failure(*weights, "model.language_model.b.weight", {3, 2})
                .find("no tensor model.language_model.b.weight"),
            std::string::npos);
  EXPECT_NE(failure(*weights, "model.ids", {1}).find("I64"), std::string::npos);
  EXPECT_EQ(weights->unused(), (std::vector<std::string>{"model.ids", "spare"}));
  weights->set_target(at::kBFloat16, at::kCPU);
  EXPECT_EQ(weights->get("spare", {1}).scalar_type(), at::kBFloat16);
}

TEST_F(WeightsTest, ShardsAreOneCheckpoint) {
  dir_.write("one.safetensors", safetensors_text({{"a", f32_tensor({1}, {1})}}));
  dir_.write("two.safetensors", safetensors_text({{"b", f32_tensor({1}, {2})}}));
  dir_.write("model.safetensors.index.json",
             R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})");
  auto weights = Weights::open(dir_.path()).value();
  EXPECT_EQ(weights->get("b", {1}).item<float>(), 2);
  EXPECT_EQ(weights->parameters(), 2);
  dir_.write("two.safetensors", safetensors_text({{"a", f32_tensor({1}, {2})}}));
  EXPECT_NE(Weights::open(dir_.path()).error().message.find("is in two files"), std::string::npos);
  for (const char* index : {R"({"weight_map": {"a": "../one.safetensors"}})",
                            R"({"weight_map": {"a": "absent.safetensors"}})",
                            R"({"weight_map": {"a": ".."}})", R"({"weight_map": 3})", "[]"}) {
    dir_.write("model.safetensors.index.json", index);
    EXPECT_FALSE(Weights::open(dir_.path()).ok()) << index;
  }
}

TEST_F(WeightsTest, TensorsAreReadWithoutMaps) {
  const std::string content =
      safetensors_text({{"a", f32_tensor({2}, {1, 2})}, {"b", f32_tensor({2, 1}, {3, 4})}});
  dir_.write("model.safetensors", content);
  auto weights = Weights::open(dir_.path()).value();
  const at::Tensor kept = weights->get("a", {2});
  ASSERT_TRUE(weights->unmap().ok());
  EXPECT_TRUE(at::equal(kept, at::tensor({1.0f, 2.0f}))) << "not the map's memory";
  EXPECT_TRUE(at::equal(weights->view("b", {2, 1}), at::tensor({3.0f, 4.0f}).view({2, 1})));
  EXPECT_EQ(weights->parameters(), 4);
  EXPECT_EQ(weights->bytes(), 16u);
  EXPECT_EQ(weights->stored_dtype(), at::kFloat);
  dir_.write("model.safetensors", content + "x");
  EXPECT_THROW(weights->get("b", {2, 1}), LoadError);
  EXPECT_TRUE(at::equal(kept, at::tensor({1.0f, 2.0f})));
}

TEST_F(WeightsTest, AFileThatChangesWhileItIsMappedIsNoticed) {
  const auto content = safetensors_text({{"a", f32_tensor({1}, {1})}});
  dir_.write("model.safetensors", content);
  auto weights = Weights::open(dir_.path()).value();
  std::filesystem::last_write_time(
      dir_.file("model.safetensors"),
      std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  const Status unmapped = weights->unmap();
  ASSERT_FALSE(unmapped.ok());
  EXPECT_NE(unmapped.error().message.find("was changed while it was in use"), std::string::npos);
}

TEST_F(WeightsTest, SketchesTellCheckpointsApart) {
  const auto sketch = [&](const std::string& name, const std::vector<int64_t>& shape,
                          const std::vector<float>& values) {
    dir_.write("model.safetensors", safetensors_text({{name, f32_tensor(shape, values)}}));
    return Weights::open(dir_.path()).value()->sketch();
  };
  std::vector<float> values(6000, 1);
  const Digest first = sketch("a", {60, 100}, values);
  EXPECT_EQ(sketch("a", {60, 100}, values), first);
  EXPECT_NE(sketch("b", {60, 100}, values), first);
  EXPECT_NE(sketch("a", {100, 60}, values), first);
  for (float& value : values) value *= 1.001f;
  EXPECT_NE(sketch("a", {60, 100}, values), first);
  values.back() = 2;
  const Digest before = sketch("a", {60, 100}, values);
  values.back() = 3;
  EXPECT_NE(sketch("a", {60, 100}, values), before) << "both ends count";
  EXPECT_NE(sketch("a", {1}, {1}), sketch("a", {1}, {2})) << "smaller than a sample";
}

TEST_F(WeightsTest, PickledCheckpointsAreRefusedByName) {
  dir_.write("pytorch_model.bin", "");
  EXPECT_NE(Weights::open(dir_.path()).error().message.find("pickled"), std::string::npos);
}

}  // namespace
}  // namespace valora::models
