// Reading the configurations of mixtures of experts.
#include "models/decoder/decoder_config.h"

#include <gtest/gtest.h>

#include "models/registry.h"
#include "models/spec/load_error.h"

namespace valora::models {
namespace {

Json qwen3_moe(const Json& more) {
  Json json = {{"architectures", {"Qwen3MoeForCausalLM"}},
               {"vocab_size", 10},
               {"hidden_size", 8},
               {"intermediate_size", 6},
               {"num_hidden_layers", 4},
               {"num_attention_heads", 2},
               {"num_key_value_heads", 1},
               {"max_position_embeddings", 64},
               {"num_experts", 5},
               {"num_experts_per_tok", 2},
               {"moe_intermediate_size", 3}};
  if (!more.is_null()) json.update(more);
  return json;
}

Result<ModelSpec> spec_of_mixture(const Json& json) {
  const ConfigReader config(json, "config.json");
  return read_model_spec(*find_family(config).value(), config);
}

// The layers with experts, as digits.
std::string layers_with_experts(const Json& more) {
  const ModelSpec spec = spec_of_mixture(qwen3_moe(more)).value();
  std::string layers;
  for (int i = 0; i < 4; ++i)
    if (spec.modules.find("model.layers." + std::to_string(i) + ".mlp.experts.4.up_proj"))
      layers += std::to_string(i);
  return layers;
}

TEST(MixtureConfig, LayersHaveExpertsByStepAndList) {
  EXPECT_EQ(layers_with_experts({}), "0123");
  EXPECT_EQ(layers_with_experts({{"decoder_sparse_step", 2}}), "13");
  EXPECT_EQ(layers_with_experts({{"mlp_only_layers", {0, 3}}}), "12");
  EXPECT_EQ(layers_with_experts({{"decoder_sparse_step", 3}, {"mlp_only_layers", {2}}}), "");
}

TEST(MixtureConfig, ExpertsAreModulesAndTheRouterStaysInFloats) {
  const ModelSpec spec = spec_of_mixture(qwen3_moe({{"mlp_only_layers", {0}}})).value();
  EXPECT_EQ(spec.experts.count, 5);
  EXPECT_EQ(spec.experts.chosen, 2);
  const auto module = [&](const char* name) {
    return spec.modules.modules()[static_cast<size_t>(spec.modules.find(name).value())];
  };
  EXPECT_EQ(module("model.layers.1.mlp.experts.0.down_proj").in, 3);
  EXPECT_TRUE(module("model.layers.1.mlp.experts.0.down_proj").in_decoder());
  EXPECT_EQ(module("model.layers.1.mlp.gate").out, 5);
  EXPECT_FALSE(module("model.layers.1.mlp.gate").in_decoder());
  EXPECT_EQ(module("model.layers.0.mlp.up_proj").out, 6);
  EXPECT_FALSE(spec.modules.find("model.layers.0.mlp.gate"));
}

TEST(MixtureConfig, BothSpellingsOfTheNumberAreRead) {
  Json newer = qwen3_moe({{"num_local_experts", 7}});
  newer.erase("num_experts");
  EXPECT_EQ(spec_of_mixture(newer).value().experts.count, 7);
  EXPECT_NE(spec_of_mixture(qwen3_moe({{"num_local_experts", 7}})).error().message.find("differ"),
            std::string::npos);
}

TEST(MixtureConfig, RanksNeedAnInputEach) {
  const auto checked = [](int64_t width, int ranks) {
    return check_ranks(spec_of_mixture(qwen3_moe({{"moe_intermediate_size", width}})).value(),
                       ranks);
  };
  EXPECT_TRUE(checked(1, 1).ok());
  EXPECT_TRUE(checked(2, 2).ok());
  EXPECT_NE(checked(1, 2).error().message.find("the 1 inputs of Qwen3MoeForCausalLM's model.layers."
                                               "0.mlp.experts.0.down_proj are fewer"),
            std::string::npos);
}

}  // namespace
}  // namespace valora::models
