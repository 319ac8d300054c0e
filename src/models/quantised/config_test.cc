// Supported configurations, and refusals that name the key.
#include "models/quantised/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"
#include "models/spec/config_reader.h"
#include "models/spec/load_error.h"

namespace valora::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string answer(const Json& config) {
  try {
    const auto read = read_quantised_config(ConfigReader(config, "config.json"));
    return read ? read->format() + ": " + read->describe() : "none";
  } catch (const LoadError& e) {
    return e.error().message;
  }
}

std::string quantised(const Json& section) { return answer({{"quantization_config", section}}); }

Json compressed() {
  return {{"quant_method", "compressed-tensors"},
          {"format", "pack-quantized"},
          {"quantization_status", "compressed"},
          {"config_groups",
           {{"group_0",
             {{"targets", {"Linear"}},
              {"input_activations", nullptr},
              {"weights",
               {{"num_bits", 4},
                {"type", "int"},
                {"strategy", "group"},
                {"group_size", 32},
                {"dynamic", false},
                {"actorder", nullptr}}}}}}},
          {"sparsity_config", Json::object()},
          {"kv_cache_scheme", nullptr}};
}

TEST(QuantisedConfig, FoundInEveryKnownLocation) {
  const std::string four = "compressed-tensors pack-quantized: 4 bits in groups of 32";
  EXPECT_EQ(quantised(compressed()), four);
  EXPECT_EQ(answer({{"compression_config", compressed()}}), four);
  EXPECT_EQ(answer({{"compression_config", {{"quantization_config", compressed()}}}}), four);
  EXPECT_EQ(answer({{"text_config", {{"quantization_config", compressed()}}}}), four);
  EXPECT_EQ(answer({{"quantization_config", nullptr}}), "none");
  EXPECT_EQ(quantised({{"quant_method", "gptq"}, {"bits", 8}, {"group_size", -1}}),
            "GPTQ: 8 bits with a scale per output");
  EXPECT_EQ(
      quantised({{"quant_method", "awq"}, {"w_bit", 4}, {"q_group_size", 64}, {"version", "GEMM"}}),
      "AWQ: 4 bits in groups of 64");
  EXPECT_EQ(quantised({{"quant_method", "fp8"}, {"activation_scheme", "dynamic"}}),
            "fp8: floats of 8 bits in blocks of 128 x 128");
  EXPECT_EQ(quantised({{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}}),
            "bitsandbytes int8: 8 bits with a scale per output");
}

TEST(QuantisedConfig, LegacyFileNextToConfigIsRead) {
  valora::testing::TempDir dir;
  dir.write("quantize_config.json", R"({"bits": 4, "group_size": 128, "sym": true})");
  Json config = Json::object();
  ASSERT_TRUE(add_older_quantisation(dir.path(), config).ok());
  EXPECT_EQ(answer(config), "GPTQ: 4 bits in groups of 128");
  config = {{"quantization_config", {{"quant_method", "awq"}}}};
  ASSERT_TRUE(add_older_quantisation(dir.path(), config).ok());
  EXPECT_EQ(answer(config), "AWQ: 4 bits in groups of 128") << "config.json counts";
  dir.write("quantize_config.json", "[]");
  config = Json::object();
  EXPECT_FALSE(add_older_quantisation(dir.path(), config).ok());
}

TEST(QuantisedConfig, InputActivationsMatchingWeightsAreAccepted) {
  const Json inputs{{"num_bits", 8},       {"type", "int"},   {"symmetric", true},
                    {"strategy", "token"}, {"dynamic", true}, {"observer_kwargs", Json::object()}};
  const auto with = [&](Json changes) {
    Json section = compressed();
    section["format"] = "int-quantized";
    Json& group = section["config_groups"]["group_0"];
    group["weights"] = {{"num_bits", 8}, {"type", "int"}, {"strategy", "channel"}};
    group["input_activations"] = inputs;
    if (!changes.empty()) group["input_activations"].update(changes);
    return quantised(section);
  };
  const std::string eight = "compressed-tensors int-quantized: 8 bits with a scale per output";
  EXPECT_EQ(with({}), eight);
  EXPECT_EQ(with({{"strategy", "tensor"}, {"dynamic", false}}), eight);
  for (const Json& refused :
       {Json{{"strategy", "tensor"}}, Json{{"dynamic", false}}, Json{{"symmetric", false}},
        Json{{"type", "float"}}, Json{{"num_bits", 4}}, Json{{"strategy", "group"}},
        Json{{"group_size", 128}}, Json{{"dynamic", "local"}}, Json{{"rotation", 1}}})
    EXPECT_THAT(with(refused), HasSubstr("config.json: quantization_config")) << refused;
}

TEST(QuantisedConfig, FoldersOfMlxAreRefusedByThatName) {
  const Json packed = {{"group_size", 64}, {"bits", 4}};
  const Json config = {{"quantization", packed}, {"quantization_config", packed}};
  try {
    read_quantised_config(ConfigReader(config, "config.json"));
    ADD_FAILURE() << "it was read";
  } catch (const LoadError& e) {
    EXPECT_THAT(e.error().message, HasSubstr("a folder of MLX"));
  }
}

TEST(QuantisedConfig, RefusesUnsupportedSettingsByKey) {
  const auto refused = [](Json section, const char* path, const Json& value, const char* word) {
    section[Json::json_pointer(path)] = value;
    EXPECT_THAT(quantised(section),
                AllOf(HasSubstr("config.json: quantization_config"), HasSubstr(word)))
        << path;
  };
  const std::string group = "/config_groups/group_0", weights = group + "/weights";
  const auto of_group = [&](const char* path, const Json& value, const char* word) {
    refused(compressed(), (group + path).c_str(), value, word);
  };
  const auto of_weights = [&](const char* path, const Json& value, const char* word) {
    refused(compressed(), (weights + path).c_str(), value, word);
  };
  refused(Json::object(), "/bits", 4, "quant_method is missing");
  refused({{"quant_method", "hqq"}}, "/bits", 4, "quant_method \"hqq\"");
  refused(compressed(), "/format", "marlin-24", "marlin-24");
  refused(compressed(), "/format", nullptr, "dense");
  refused(compressed(), "/quantization_status", "frozen", "frozen");
  refused(compressed(), "/kv_cache_scheme", {{"num_bits", 8}}, "kv_cache_scheme");
  refused(compressed(), "/transform_config", {{"config_groups", {1}}}, "transform_config");
  refused(compressed(), "/sparsity_config", {{"format", "sparse-24-bitmask"}}, "sparsity_config");
  refused(compressed(), "/config_groups", {{"W4A16", {"Linear"}}}, "W4A16");
  refused(compressed(), "/config_groups", nullptr, "config_groups");
  refused(compressed(), "/ignore", "lm_head", "ignore");
  refused(compressed(), "/ignore", {"re:("}, "ignore");
  of_group("/input_activations", {{"num_bits", 8}}, "input_activations");  // not with 4-bit words
  of_group("/output_activations", {{"num_bits", 8}}, "output_activations");
  of_group("/targets", {"re:["}, "targets");
  of_group("/format", "nvfp4-pack-quantized", "nvfp4-pack-quantized");
  of_weights("/num_bits", 3, "3 bits");
  of_weights("/type", "float", "pack-quantized\" with weights of type \"float");
  of_weights("/strategy", "tensor_group", "tensor_group");
  of_weights("/strategy", "block", "block");
  of_weights("/group_size", 0, "group_size");
  of_weights("/group_size", nullptr, "group_size");
  of_weights("/dynamic", true, "dynamic");
  of_weights("/rotation", "hadamard", "rotation");
  Json twice = compressed();
  twice["config_groups"]["group_1"] = twice["config_groups"]["group_0"];
  EXPECT_EQ(quantised(twice), quantised(compressed()));
  refused(twice, "/config_groups/group_1/weights/num_bits", 8, "group_0 and group_1");

  const Json gptq = {{"quant_method", "gptq"}, {"bits", 4}};
  refused(gptq, "/bits", nullptr, "bits");
  refused(gptq, "/bits", 3, "3 bits");
  refused(gptq, "/checkpoint_format", "marlin", "marlin");
  refused(gptq, "/is_marlin_format", true, "is_marlin_format");
  refused(gptq, "/pack_dtype", "int16", "int16");
  refused(gptq, "/group_size", 0, "group_size");
  refused(gptq, "/dynamic", {{"+:(", {{"bits", 8}}}}, "dynamic");
  refused(gptq, "/dynamic", {{"+:a", {{"bits", 2}}}}, "2 bits");

  const Json awq = {{"quant_method", "awq"}};
  refused(awq, "/version", "gemv", "gemv");
  refused(awq, "/bits", 8, "8 bits");
  refused(awq, "/zero_point", false, "zero_point");
  refused(awq, "/backend", "llm-awq", "llm-awq");

  const Json fp8 = {{"quant_method", "fp8"}};
  refused(fp8, "/weight_block_size", {128}, "weight_block_size");
  refused(fp8, "/weight_block_size", {0, 128}, "weight_block_size");
  refused(fp8, "/fmt", "e5m2", "e5m2");

  const Json four = {{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}};
  refused(four, "/load_in_4bit", false, "load_in_8bit");
  refused(four, "/load_in_8bit", true, "only one");
  refused(four, "/bnb_4bit_quant_type", "int4", "int4");
}

TEST(QuantisedConfig, GptqDynamicRulesApplyPerLinear) {
  const Json section = {{"quant_method", "gptq"},
                        {"bits", 4},
                        {"dynamic",
                         {{"-:.*lm_head.*", Json::object()},
                          {"+:.*\\.0\\..*", {{"bits", 8}}},
                          {".*\\.1\\..*down.*", {{"group_size", 32}}},
                          {".*\\.1\\..*proj", {{"group_size", 64}}}}}};
  const auto config =
      read_quantised_config(ConfigReader({{"quantization_config", section}}, "config.json"));
  const auto rule = [&](const std::string& name) {
    return config->rule_of(std::vector<std::string>{name});
  };
  EXPECT_FALSE(rule("lm_head")->scheme);
  EXPECT_EQ(rule("layers.0.up_proj")->scheme->bits, 8);
  EXPECT_EQ(rule("layers.1.up_proj")->scheme->group, 64);
  EXPECT_EQ(rule("layers.2.up_proj")->scheme->group, 128);
  EXPECT_THROW(rule("layers.1.down_proj"), LoadError) << "the order of the rules is not known";
}

Json auto_round(const char* packing) {
  return {{"quant_method", "auto-round"},
          {"packing_format", packing},
          {"bits", 4},
          {"group_size", 32},
          {"sym", true},
          {"data_type", "int"}};
}

QuantisedConfig config_of(const Json& section) {
  return read_quantised_config(ConfigReader({{"quantization_config", section}}, "config.json"))
      .value();
}

TEST(QuantisedConfig, AutoRoundHasSettingsOfSingleLinears) {
  Json section = auto_round("auto_round:auto_gptq");
  section["extra_config"] = {{"layers.0.q_proj", {{"bits", 8}, {"group_size", -1}}},
                             {"layers.0.k_proj", {{"bits", 16}, {"data_type", "float"}}},
                             {"layers.0.v_proj", {{"sym", false}}},
                             {"^layers\\.1\\.", {{"bits", 16}}},
                             {"up_proj$", {{"bits", 8}}}};
  const QuantisedConfig config = config_of(section);
  const auto scheme = [&](const std::string& name) {
    return config.rule_of(std::vector<std::string>{name})->scheme;
  };
  const QuantisedScheme usual{.packing = Packing::kGptq,
                              .bits = 4,
                              .scope = ScaleScope::kGroup,
                              .group = 32,
                              .symmetric = true,
                              .zeros_less_one = true};
  EXPECT_EQ(scheme("layers.0.o_proj"), usual);
  EXPECT_EQ(scheme("layers.0.q_proj")->bits, 8);
  EXPECT_EQ(scheme("layers.0.q_proj")->scope, ScaleScope::kChannel);
  EXPECT_FALSE(scheme("layers.0.k_proj"));
  EXPECT_FALSE(scheme("layers.0.v_proj")->symmetric);
  EXPECT_EQ(scheme("layers.0.v_proj")->group, 32);
  EXPECT_FALSE(scheme("layers.1.q_proj"));
  EXPECT_EQ(scheme("other.layers.1.q_proj"), usual) << "the expression has an anchor";
  EXPECT_EQ(scheme("layers.2.mlp.up_proj")->bits, 8);
  EXPECT_THROW(scheme("layers.1.mlp.up_proj"), LoadError) << "the order of the rules is not known";
}

TEST(QuantisedConfig, AutoRoundIsReadInTwoLayouts) {
  const QuantisedConfig awq = config_of(auto_round("auto_round:auto_awq"));
  const auto scheme = awq.rule_of(std::vector<std::string>{"a"})->scheme;
  EXPECT_EQ(scheme->packing, Packing::kAwq);
  EXPECT_FALSE(scheme->symmetric) << "zero-points are stored";
  EXPECT_FALSE(scheme->zeros_less_one);
  const auto refusal = [](const Json& section) {
    try {
      config_of(section);
    } catch (const LoadError& e) {
      return e.error().message;
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refusal(auto_round("auto_round:exllamav2")),
              HasSubstr("export the model in the format auto_gptq"));
  const Json wrong = {{"data_type", "mx_fp"}, {"act_bits", 8}, {"super_bits", 6}, {"bits", 3}};
  for (const auto& [key, value] : wrong.items()) {
    Json section = auto_round("auto_round:auto_gptq");
    EXPECT_EQ(refusal(section), "accepted");
    section[key] = value;
    EXPECT_NE(refusal(section), "accepted") << key;
  }
}

TEST(QuantisedConfig, ExceptionOfAStoredLinearHoldsUnderAllNamesOnly) {
  Json section = {{"quant_method", "compressed-tensors"},
                  {"format", "pack-quantized"},
                  {"config_groups",
                   {{"group_0",
                     {{"targets", {"Linear"}},
                      {"weights", {{"num_bits", 4}, {"type", "int"}, {"strategy", "channel"}}}}}}},
                  {"ignore", {"re:visual.*"}}};
  const std::vector<std::string> names = {"model.visual.fc", "visual.fc"};
  EXPECT_FALSE(config_of(section).rule_of(names)->scheme);
  EXPECT_EQ(config_of(section).rule_of_stored(names)->scheme->bits, 4);
  section["ignore"] = {"re:.*visual.*"};
  EXPECT_FALSE(config_of(section).rule_of_stored(names)->scheme);
}

TEST(QuantisedConfig, AwqExceptionsMatchWholeNames) {
  const auto config = read_quantised_config(ConfigReader(
      {{"quantization_config",
        {{"quant_method", "awq"}, {"modules_to_not_convert", {"visual", "layers.1", "o_proj"}}}}},
      "config.json"));
  const auto stays = [&](const std::string& name) {
    return !config->rule_of(std::vector<std::string>{name})->scheme;
  };
  EXPECT_TRUE(stays("visual.blocks.0.attn.qkv"));
  EXPECT_TRUE(stays("layers.1.mlp"));
  EXPECT_TRUE(stays("layers.5.o_proj"));
  EXPECT_FALSE(stays("layers.11.mlp"));
  EXPECT_FALSE(stays("layers.5.no_proj"));
}

}  // namespace
}  // namespace valora::models
