// Reading the configurations of Qwen3.5.
#include "models/families/families.h"

#include <gtest/gtest.h>

#include "models/spec/load_error.h"

namespace valora::models {
namespace {

Json qwen3_5(const Json& more) {
  Json text = {
      {"model_type", "qwen3_5_text"}, {"vocab_size", 10},         {"hidden_size", 64},
      {"intermediate_size", 6},       {"num_hidden_layers", 8},   {"num_attention_heads", 2},
      {"num_key_value_heads", 1},     {"head_dim", 32},           {"linear_num_key_heads", 2},
      {"linear_num_value_heads", 4},  {"linear_key_head_dim", 8}, {"linear_value_head_dim", 12},
      {"max_position_embeddings", 64}};
  if (!more.is_null()) text.update(more);
  return {{"model_type", "qwen3_5"},
          {"text_config", text},
          {"vision_config",
           {{"depth", 1},
            {"hidden_size", 8},
            {"num_heads", 2},
            {"intermediate_size", 9},
            {"num_position_embeddings", 4},
            {"out_hidden_size", 64}}}};
}

ModelSpec qwen3_5_spec_of(const Json& json) {
  const ConfigReader config(json, "config.json");
  const Family* family = find_family(config).value();
  return read_model_spec(*family, config).value();
}

std::string qwen3_5_refusal(const Json& more) {
  const ConfigReader config(qwen3_5(more), "config.json");
  const auto spec = read_model_spec(*find_family(config).value(), config);
  return spec.ok() ? "accepted" : spec.error().message;
}

const adapters::Module& module_of(const ModelSpec& spec, const char* name) {
  return spec.modules.modules()[static_cast<size_t>(spec.modules.find(name).value())];
}

TEST(Qwen35, RanksHaveHeadsOfKeysWithTheirHeadsOfValues) {
  const ModelSpec spec = qwen3_5_spec_of(qwen3_5({}));
  EXPECT_TRUE(check_ranks(spec, 2).ok());
  EXPECT_FALSE(check_ranks(spec, 4).ok()) << "two heads of keys";
  EXPECT_EQ(spec.state.part(2).channels(), spec.state.channels() / 2);
  const adapters::Module& qkv =
      module_of(spec, "model.language_model.layers.0.linear_attn.in_proj_qkv");
  const adapters::Shares second = slice_of(qkv, 1, 2).out;
  EXPECT_EQ(second, (adapters::Shares{{adapters::Share{8, 16}, {24, 32}, {56, 80}}, 3}));
}

TEST(Qwen35, ThreeOfFourLayersAreRecurrent) {
  const ModelSpec spec = qwen3_5_spec_of(qwen3_5({}));
  EXPECT_EQ(spec.architecture, "Qwen3_5ForConditionalGeneration");
  EXPECT_EQ(spec.layers, 8);
  EXPECT_EQ(spec.kv_layers(), 2);
  EXPECT_EQ(spec.state.layers, 6);
  EXPECT_EQ(spec.state.channels(), 2 * 2 * 8 + 4 * 12);
  EXPECT_EQ(spec.state.taps, 4);
  EXPECT_EQ(spec.visual_levels, 0);
  EXPECT_EQ(spec.image_token, 248056);
  EXPECT_EQ(spec.frame_marks->begin, 248053);
  EXPECT_EQ(qwen3_5_spec_of(qwen3_5({{"full_attention_interval", 2}})).kv_layers(), 4);
  const Json types = {"full_attention", "linear_attention"};
  EXPECT_EQ(
      qwen3_5_spec_of(qwen3_5({{"num_hidden_layers", 2}, {"layer_types", types}})).kv_layers(), 1);
}

TEST(Qwen35, AllLinearsTakeAdapters) {
  const ModelSpec spec = qwen3_5_spec_of(qwen3_5({}));
  const std::string delta = "model.language_model.layers.0.linear_attn.";
  EXPECT_EQ(module_of(spec, (delta + "in_proj_qkv").c_str()).out, spec.state.channels());
  EXPECT_EQ(module_of(spec, (delta + "in_proj_b").c_str()).out, 4);
  EXPECT_EQ(module_of(spec, (delta + "out_proj").c_str()).in, 48);
  EXPECT_EQ(module_of(spec, (delta + "conv1d").c_str()).kind, adapters::ModuleKind::kOther);
  EXPECT_EQ(module_of(spec, "model.language_model.layers.3.self_attn.q_proj").out, 2 * 2 * 32)
      << "with gates";
  EXPECT_EQ(module_of(spec, "model.language_model.layers.3.self_attn.o_proj").in, 2 * 32);
  EXPECT_FALSE(spec.modules.find("model.language_model.layers.0.self_attn.q_proj"));
  EXPECT_FALSE(spec.modules.find("model.visual.deepstack_merger_list.0.linear_fc1"));
}

TEST(Qwen35, TextModelLoadsFromMultimodalFolder) {
  for (const Json& json : {qwen3_5({}), qwen3_5({}).at("text_config")}) {
    Json changed = json;
    changed["architectures"] = {"Qwen3_5ForCausalLM"};
    const ModelSpec spec = qwen3_5_spec_of(changed);
    EXPECT_EQ(spec.axes, 1);
    EXPECT_FALSE(spec.image_token);
    EXPECT_EQ(spec.modules.find("model.language_model.layers.0.mlp.up_proj"),
              spec.modules.find("model.layers.0.mlp.up_proj"));
  }
}

TEST(Qwen35, RefusesInvalidLayerSettings) {
  EXPECT_EQ(qwen3_5_refusal({}), "accepted");
  EXPECT_EQ(qwen3_5_refusal({{"partial_rotary_factor", 0.5}}), "accepted");
  const auto refused = [](const Json& more, const char* word) {
    const std::string why = qwen3_5_refusal(more);
    EXPECT_NE(why.find(word), std::string::npos) << more << ": " << why;
  };
  refused({{"linear_num_value_heads", 3}}, "linear_num_value_heads");
  refused({{"linear_conv_kernel_dim", 17}}, "linear_conv_kernel_dim");
  refused({{"full_attention_interval", 9}}, "no layer has full attention");
  refused({{"layer_types", {"full_attention"}}}, "layer_types");
  refused({{"num_hidden_layers", 1}, {"layer_types", {"sliding_attention"}}}, "sliding_attention");
  refused({{"partial_rotary_factor", 0.1}}, "partial_rotary_factor");
  refused({{"partial_rotary_factor", 1.5}}, "partial_rotary_factor");
  refused({{"hidden_act", "gelu"}}, "hidden_act");
  refused({{"rope_parameters", {{"rope_type", "default"}, {"mrope_section", {9, 1, 1}}}}},
          "mrope_section");
}

}  // namespace
}  // namespace valora::models
