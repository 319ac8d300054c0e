// The windows, heads and norms that the families' configurations give each layer.
#include "models/decoder/decoder_config.h"

#include <gtest/gtest.h>

#include "models/families/families.h"
#include "models/spec/load_error.h"

namespace valora::models {
namespace {

Json sizes(const Json& more) {
  Json json = {{"vocab_size", 10},
               {"hidden_size", 8},
               {"intermediate_size", 6},
               {"num_hidden_layers", 3},
               {"num_attention_heads", 2},
               {"num_key_value_heads", 1},
               {"max_position_embeddings", 64}};
  json.update(more);
  return json;
}

ConfigReader reader(const Json& more) { return {sizes(more), "config.json"}; }

DecoderConfig qwen3(const Json& more) { return read_qwen3_config(reader(more), reader(more)); }

DecoderConfig read(Windows windows, const Json& more) {
  const ConfigReader config = reader(more);
  return read_decoder_config(config, config, {.windows = {windows}});
}

std::vector<int64_t> windows_of(const DecoderConfig& config) {
  std::vector<int64_t> windows;
  for (const LayerConfig& layer : config.layers) windows.push_back(layer.window);
  return windows;
}

std::vector<int64_t> windows_of(Windows windows, const Json& more) {
  return windows_of(read(windows, more));
}

std::string refusal(Windows windows, const Json& more) {
  try {
    read(windows, more);
  } catch (const LoadError& e) {
    return e.error().message;
  }
  return "accepted";
}

using Sizes = std::vector<int64_t>;
const Json kOn = {{"use_sliding_window", true}, {"sliding_window", 32}, {"max_window_layers", 1}};

Json with(Json json, const Json& more) {
  json.update(more);
  return json;
}

TEST(DecoderConfig, SwitchedWindowsApplyToUpperOrListedLayers) {
  constexpr auto kKind = Windows::kSwitched;
  EXPECT_EQ(windows_of(kKind, kOn), (Sizes{0, 32, 32}));
  EXPECT_EQ(windows_of(kKind, with(kOn, {{"use_sliding_window", false}})), (Sizes{0, 0, 0}));
  EXPECT_EQ(windows_of(kKind, {{"sliding_window", 32}}), (Sizes{0, 0, 0}));
  EXPECT_EQ(windows_of(kKind, with(kOn, {{"max_window_layers", 3}})), (Sizes{0, 0, 0}));
  EXPECT_EQ(windows_of(kKind, with(kOn, {{"sliding_window", 64}})), (Sizes{0, 0, 0}))
      << "as long as the context";
  EXPECT_EQ(windows_of(kKind, with(kOn, {{"sliding_window", nullptr}})), (Sizes{0, 0, 0}));
  const Json types = {"sliding_attention", "full_attention", "sliding_attention"};
  EXPECT_EQ(windows_of(kKind, with(kOn, {{"layer_types", types}})), (Sizes{32, 0, 32}));
  // Defaults: 4096 positions, from layer 28 on.
  EXPECT_EQ(windows_of(kKind, {{"use_sliding_window", true}, {"max_position_embeddings", 8192}}),
            (Sizes{0, 0, 0}));
  EXPECT_EQ(windows_of(kKind, {{"use_sliding_window", true},
                               {"max_position_embeddings", 8192},
                               {"max_window_layers", 2}}),
            (Sizes{0, 0, 4096}));
  EXPECT_EQ(windows_of(kKind, with(kOn, {{"rope_scaling",
                                          {{"type", "yarn"},
                                           {"factor", 2.0},
                                           {"original_max_position_embeddings", 64}}},
                                         {"sliding_window", 100}})),
            (Sizes{0, 100, 100}))
      << "shorter than the positions that the rope reaches";
}

TEST(DecoderConfig, EveryLayerOfMistralHasTheWindow) {
  constexpr auto kKind = Windows::kAll;
  EXPECT_EQ(windows_of(kKind, {{"sliding_window", 32}}), (Sizes{32, 32, 32}));
  EXPECT_EQ(windows_of(kKind, {{"sliding_window", nullptr}}), (Sizes{0, 0, 0}));
  EXPECT_EQ(windows_of(kKind, {{"sliding_window", 64}}), (Sizes{0, 0, 0}));
  EXPECT_EQ(windows_of(kKind, {{"max_position_embeddings", 8192}}), (Sizes{4096, 4096, 4096}));
  EXPECT_EQ(windows_of(kKind, with(kOn, {{"use_sliding_window", false}})), (Sizes{32, 32, 32}))
      << "a key of other classes";
}

TEST(DecoderConfig, RefusesLayerTypesOfOtherClasses) {
  const Json sliding = {"sliding_attention", "sliding_attention", "sliding_attention"},
             mixed = {"sliding_attention", "full_attention", "sliding_attention"},
             chunked = {"chunked_attention", "full_attention", "full_attention"};
  for (const Windows kind : {Windows::kNone, Windows::kSwitched, Windows::kAll}) {
    EXPECT_NE(refusal(kind, {{"layer_types", chunked}}).find("chunked_attention"),
              std::string::npos);
    EXPECT_NE(refusal(kind, {{"layer_types", {"full_attention"}}}).find("1 entries for 3 layers"),
              std::string::npos);
    // Null leaves no window for a sliding layer.
    EXPECT_NE(refusal(kind, {{"sliding_window", nullptr}, {"layer_types", sliding}})
                  .find("sliding_attention"),
              std::string::npos);
  }
  EXPECT_NE(refusal(Windows::kAll, {{"sliding_window", 32}, {"layer_types", mixed}})
                .find("full_attention"),
            std::string::npos);
  EXPECT_EQ(refusal(Windows::kAll, {{"sliding_window", 64}, {"layer_types", mixed}}), "accepted");
  // Llama's class applies a window to its cache only.
  EXPECT_NE(refusal(Windows::kNone, {{"sliding_window", 32}}).find("sliding_window 32"),
            std::string::npos);
  EXPECT_EQ(refusal(Windows::kNone, {{"sliding_window", 64}, {"layer_types", sliding}}),
            "accepted");
  EXPECT_EQ(refusal(Windows::kNone, {{"sliding_window", 32}, {"use_sliding_window", false}}),
            "accepted");
}

TEST(DecoderConfig, Qwen3HasHeadNormsAndExplicitHeadDim) {
  const DecoderConfig plain = qwen3(Json::object());
  EXPECT_EQ(plain.layers[2].head_dim, 128) << "the class's default, not hidden / heads";
  EXPECT_TRUE(plain.layers[0].qk_norm);
  EXPECT_FALSE(plain.layers[0].qkv_bias || plain.layers[0].o_bias || plain.layers[0].mlp_bias);
  const DecoderConfig more = qwen3(with(kOn, {{"head_dim", 6}, {"attention_bias", true}}));
  EXPECT_EQ(more.layers[0].head_dim, 6);
  EXPECT_TRUE(more.layers[0].qkv_bias && more.layers[0].o_bias);
  EXPECT_EQ(windows_of(more), (Sizes{0, 32, 32}));
  const ModelSpec spec = qwen3_family().spec(reader({{"head_dim", 6}}));
  const auto q = spec.modules.find("model.layers.1.self_attn.q_proj");
  ASSERT_TRUE(q);
  EXPECT_EQ(spec.modules.modules()[*q].out, 12);
}

DecoderConfig read_mistral(const ConfigReader& config) {
  return read_mistral_config(config, config);
}

TEST(DecoderConfig, MistralUsesClassDefaults) {
  const DecoderConfig c = read_mistral(ConfigReader(Json::object(), "config.json"));
  EXPECT_EQ(c.layers.size(), 32);
  EXPECT_EQ(c.layers[0].kv_heads, 8);
  EXPECT_EQ(c.layers[0].head_dim, 128);
  EXPECT_EQ(c.layers[31].window, 4096);
  EXPECT_EQ(c.max_positions, 131072);
  EXPECT_FALSE(read_mistral(reader({{"attention_bias", true}})).layers[0].qkv_bias)
      << "a key of other classes";
  EXPECT_EQ(read_mistral(reader({{"num_key_value_heads", nullptr}})).layers[0].kv_heads, 2)
      << "null is as many as heads";
}

DecoderConfig gemma3(const Json& more) {
  const ConfigReader config =
      reader(with({{"head_dim", 4}, {"num_hidden_layers", 7}, {"sliding_window", 8}}, more));
  return read_gemma3_config(config, config);
}

TEST(DecoderConfig, Gemma3EverySixthLayerHasFullAttention) {
  const DecoderConfig c = gemma3(Json::object());
  EXPECT_EQ(windows_of(c), (Sizes{8, 8, 8, 8, 8, 0, 8}));
  EXPECT_EQ(windows_of(gemma3({{"sliding_window_pattern", 2}})), (Sizes{8, 0, 8, 0, 8, 0, 8}));
  EXPECT_TRUE(c.layers[0].local_rotary && !c.layers[5].local_rotary);
  EXPECT_EQ(c.local_rotary->theta, 10000);
  EXPECT_EQ(c.rotary.theta, 1e6);
  EXPECT_TRUE(c.tied_embeddings);
  EXPECT_EQ(c.layers[0].attention_scale, 1.0 / 16) << "of 256, the class's default";
  EXPECT_EQ(gemma3({{"query_pre_attn_scalar", 4}}).layers[0].attention_scale, 0);
}

// A window longer than every sequence still makes a layer "sliding": the ropes differ.
TEST(DecoderConfig, Gemma3RopeFollowsLayerType) {
  const DecoderConfig c = gemma3(
      {{"sliding_window", 64},
       {"rope_parameters",
        {{"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 500.0}}},
         {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 200.0}}}}}});
  EXPECT_EQ(windows_of(c), (Sizes{0, 0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(c.layers[0].local_rotary && !c.layers[5].local_rotary);
  EXPECT_EQ(c.local_rotary->theta, 200);
  EXPECT_EQ(c.rotary.theta, 500);
  EXPECT_EQ(c.rotary.linear_factor, 8);
  EXPECT_THROW(gemma3({{"rope_parameters", {{"sliding_attention", {{"rope_type", "linear"}}}}}}),
               LoadError);
}

}  // namespace
}  // namespace valora::models
