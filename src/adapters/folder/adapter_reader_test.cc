#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "adapters/testing/adapter_folder.h"

namespace valora::adapters {
namespace {

using testing::AdapterFolder;
using ::testing::ElementsAre;
using testing::filled;
using ::testing::HasSubstr;
using testing::kHidden;
using testing::kInner;
using testing::kQ0;
using testing::kQ1;

constexpr const char* kUp0 = "model.language_model.layers.0.mlp.up_proj";

std::string key(const std::string& module, const std::string& parameter) {
  return AdapterFolder::key(module, parameter);
}

TEST(AdapterReader, ReadsTargetsInTheOrderOfModules) {
  AdapterFolder folder;
  folder.add_lora(kUp0, 3, kHidden, kInner);
  folder.config["target_modules"] = {"up_proj", "q_proj"};
  folder.config["rank_pattern"] = {{"up_proj", 3}};
  folder.config["layers_to_transform"] = {0, 1};
  folder.config["exclude_modules"] = {"layers.1.mlp.up_proj"};
  for (const size_t padding : {0, 1, 3}) {  // data at any alignment
    const auto spec = folder.read({}, padding);
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    ASSERT_EQ(spec->targets.size(), 3u);
    EXPECT_EQ(spec->targets[0].module, 0);
    EXPECT_EQ(spec->targets[1].module, 1);
    EXPECT_EQ(spec->targets[2].module, 2);
    EXPECT_EQ(spec->targets[1].rank, 3);
    EXPECT_FLOAT_EQ(spec->targets[0].scale, 1.5f);
    EXPECT_FLOAT_EQ(spec->targets[1].scale, 1.0f);
    EXPECT_EQ(spec->targets[1].a.shape, (std::vector<int64_t>{3, kHidden}));
    EXPECT_EQ(spec->targets[1].b.shape, (std::vector<int64_t>{kInner, 3}));
    EXPECT_EQ(spec->max_rank, 3);
    EXPECT_EQ(spec->bytes, 4u * (2 * 2 * 2 * kHidden + 3 * kHidden + 3 * kInner));
    EXPECT_EQ(spec->path, folder.dir.path());
    EXPECT_TRUE(spec->warnings.empty());
    EXPECT_TRUE(spec->heads.empty());
  }
}

TEST(AdapterReader, ViewsOutliveTheReader) {
  AdapterFolder folder;
  auto spec = folder.read();
  ASSERT_TRUE(spec.ok());
  const AdapterSpec kept = *std::move(spec);
  const auto& bytes = kept.targets[0].a.bytes;
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), filled({2, kHidden}, 1).bytes);
}

TEST(AdapterReader, ViewsOutliveTheFile) {
  AdapterFolder folder;
  const auto spec = folder.read();
  ASSERT_TRUE(spec.ok());
  folder.dir.write("adapter_model.safetensors", "");
  const auto& bytes = spec->targets[0].a.bytes;
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), filled({2, kHidden}, 1).bytes);
}

TEST(AdapterReader, RefusesTensorFilesOverTheLimit) {
  AdapterFolder folder;
  const auto spec = folder.read({.max_file_bytes = 100});
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.error().code, ErrorCode::kPayloadTooLarge);
}

TEST(AdapterReader, RsloraDividesByRootOfRank) {
  AdapterFolder folder;
  folder.config["use_rslora"] = true;
  EXPECT_FLOAT_EQ(folder.read()->targets[0].scale, 3 / std::sqrt(2.0f));
}

TEST(AdapterReader, ReadsOldNamesAndNamesContainingAdapter) {
  AdapterFolder folder;
  const Digest digest = folder.read()->digest;
  folder.tensors.clear();
  for (const char* layer : {"0", "1"}) {
    const std::string module = std::string("model.layers.") + layer + ".self_attn.q_proj";
    folder.tensors[key(module, "lora_A.default.weight")] = filled({2, kHidden}, 1);
    folder.tensors[key(module, "lora_B.default.weight")] = filled({kHidden, 2}, -1);
  }
  EXPECT_EQ(folder.read()->digest, digest);
  // The digest also ignores how the configuration spells its targets.
  folder.config["target_modules"] = R"(model\.layers\.\d\.self_attn\.q_proj)";
  EXPECT_EQ(folder.read()->digest, digest);
  folder.config["target_modules"] = R"(model\.layers\.\d\..*_proj)";
  EXPECT_THAT(folder.read()->warnings,
              ElementsAre(HasSubstr("targets " + std::string(kUp0) + " and 1 more modules")));
}

// What a configuration targets is matched with all modules once per table.
TEST(AdapterReader, OneTableServesManyConfigurations) {
  const ModuleTable table = testing::small_table();
  const auto warnings = [&](const AdapterFolder& folder) {
    folder.write();
    return read_adapter(folder.dir.path(), table, {})->warnings;
  };
  AdapterFolder narrow, wide, excluding, old;
  wide.config["target_modules"] = {"q_proj", "up_proj"};
  excluding.config = wide.config;
  excluding.config["exclude_modules"] = {"layers.0.mlp.up_proj"};
  // Names without "language_model", which the pattern does not match.
  old.config["target_modules"] = R"(model\.layers\.\d\..*_proj|.*language_model.*q_proj)";
  old.tensors.clear();
  for (const char* layer : {"0", "1"})
    old.add_lora(std::string("model.layers.") + layer + ".self_attn.q_proj", 2, kHidden, kHidden);
  AdapterFolder renamed;
  renamed.config = old.config;
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(warnings(narrow), ElementsAre());
    EXPECT_THAT(warnings(wide),
                ElementsAre(HasSubstr("targets " + std::string(kUp0) + " and 1 more modules")));
    EXPECT_THAT(warnings(excluding), ElementsAre(HasSubstr("layers.1.mlp.up_proj without")));
    EXPECT_THAT(warnings(old),
                ElementsAre(HasSubstr("targets " + std::string(kUp0) + " and 1 more modules")));
    EXPECT_THAT(warnings(renamed), ElementsAre()) << "the file's names are the newer ones";
  }
}

TEST(AdapterReader, ReadsHalfPrecision) {
  AdapterFolder folder;
  folder.tensors[key(kQ0, "lora_A.weight")] = {"BF16", {2, kHidden}, std::string(16, '\x3f')};
  folder.tensors[key(kQ0, "lora_B.weight")] = {"F16", {kHidden, 2}, std::string(16, '\x3c')};
  const auto spec = folder.read();
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->targets[0].a.dtype, DType::kBF16);
  EXPECT_EQ(spec->targets[0].b.dtype, DType::kF16);
}

TEST(AdapterReader, ErrorNamesMissingFile) {
  const ModuleTable table = testing::small_table();
  testing::TempDir dir;
  const auto read = [&](const std::string& path) { return read_adapter(path, table, {}).error(); };
  EXPECT_EQ(read(dir.file("none")).code, ErrorCode::kNotFound);
  EXPECT_EQ(read(dir.write("file", "x")).code, ErrorCode::kNotFound);
  EXPECT_THAT(read(dir.path()).message, HasSubstr("no adapter_config.json"));
  dir.write("adapter_config.json", R"({"peft_type":"LORA","target_modules":["q_proj"]})");
  EXPECT_EQ(read(dir.path()).code, ErrorCode::kNotFound);
  EXPECT_THAT(read(dir.path()).message, HasSubstr("no adapter_model.safetensors"));
  dir.write("adapter_model.bin", "x");
  EXPECT_EQ(read(dir.path()).code, ErrorCode::kUnprocessable);
  EXPECT_THAT(read(dir.path()).message, HasSubstr("adapter_model.bin"));
}

TEST(AdapterReader, RefusesWrongShapes) {
  const auto refusal = [](const std::string& parameter, const std::vector<int64_t>& shape) {
    AdapterFolder folder;
    folder.tensors[key(kQ0, parameter)] = filled(shape, 0);
    return folder.refusal();
  };
  EXPECT_EQ(refusal("lora_A.weight", {2, 5}),
            "lora_A of " + std::string(kQ0) +
                " has shape [2, 5]; its configured rank and the module require [2, 4]");
  EXPECT_EQ(refusal("lora_B.weight", {2, 4}),
            "lora_B of " + std::string(kQ0) +
                " has shape [2, 4]; its configured rank and the module require [4, 2]");
  EXPECT_THAT(refusal("lora_A.weight", {3, 4}), HasSubstr("has shape [3, 4]"));
  EXPECT_THAT(refusal("lora_A.weight", {8}), HasSubstr("has shape [8]"));
  EXPECT_THAT(refusal("lora_A.weight", {}), HasSubstr("has shape []"));
  EXPECT_THAT(refusal("lora_A.weight", {0, 4}), HasSubstr("has shape [0, 4]"));
  EXPECT_THAT(refusal("lora_B.weight", {4, 2, 1}), HasSubstr("has shape [4, 2, 1]"));
}

TEST(AdapterReader, RefusesRanksOutOfBounds) {
  AdapterFolder folder;
  EXPECT_TRUE(folder.read({.max_rank = 2}).ok());
  const auto refused = folder.read({.max_rank = 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnprocessable);
  EXPECT_THAT(refused.error().message, HasSubstr("rank 2 is above --max-lora-rank 1"));
  folder.config["rank_pattern"] = {{kQ1, 0}};
  EXPECT_THAT(folder.refusal(), HasSubstr("rank 0 of " + std::string(kQ1) + " is below 1"));
  folder.config["rank_pattern"] = {{kQ1, 2147483647}};
  EXPECT_THAT(folder.refusal(), HasSubstr("rank 2147483647 is above --max-lora-rank 256"));
}

TEST(AdapterReader, RefusesValuesThatAreNotFinite) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    AdapterFolder folder;
    std::vector<float> values(8, 1.0f);
    values.back() = bad;
    folder.tensors[key(kQ1, "lora_B.weight")] = testing::f32_tensor({kHidden, 2}, values);
    EXPECT_THAT(folder.refusal(),
                HasSubstr(key(kQ1, "lora_B.weight") + "\" has values that are not finite"));
  }
}

TEST(AdapterReader, RefusesOtherDTypes) {
  AdapterFolder folder;
  folder.tensors[key(kQ0, "lora_A.weight")] = {"I32", {2, kHidden}, std::string(32, '\1')};
  EXPECT_THAT(folder.refusal(), HasSubstr("has dtype I32"));
}

TEST(AdapterReader, RefusesIncompleteOrDoubledModules) {
  AdapterFolder missing;
  missing.tensors.erase(key(kQ1, "lora_A.weight"));
  EXPECT_THAT(missing.refusal(), HasSubstr(std::string(kQ1) + " has no lora_A weight"));
  AdapterFolder doubled;
  doubled.tensors[key("model.layers.0.self_attn.q_proj", "lora_B.weight")] =
      filled({kHidden, 2}, 0);
  EXPECT_THAT(doubled.refusal(), HasSubstr("is the second lora_B of " + std::string(kQ0)));
  AdapterFolder two_adapters;
  two_adapters.tensors[key(kQ0, "lora_A.other.weight")] = filled({2, kHidden}, 0);
  EXPECT_THAT(two_adapters.refusal(), HasSubstr("is the second lora_A"));
}

TEST(AdapterReader, RefusesModulesThatCannotBeServed) {
  const auto refusal = [](const std::string& module) {
    AdapterFolder folder;
    folder.add_lora(module, 2, 2, 2);
    return folder.refusal();
  };
  EXPECT_EQ(refusal("model.visual.blocks.0.attn.qkv"),
            "the adapter adapts model.visual.blocks.0.attn.qkv, which this version cannot serve");
  EXPECT_THAT(refusal("visual.blocks.0.attn.qkv"), HasSubstr("cannot serve"));
  EXPECT_THAT(refusal("lm_head"), HasSubstr("tensors for lm_head, which the configuration"));
  EXPECT_THAT(refusal("model.language_model.layers.7.self_attn.q_proj"),
              HasSubstr("layers.7.self_attn.q_proj, which this model does not have"));
}

TEST(AdapterReader, EveryTensorIsUsedOrNamedInTheRefusal) {
  for (const auto& [name, reason] : std::vector<std::pair<std::string, std::string>>{
           {key(kQ0, "lora_magnitude_vector.a.b.weight"), "of an unknown kind"},
           {key(kQ0, "lora_A.bias"), "of an unknown kind"},
           {key(kQ0, "lora_B.a.b.bias"), "of an unknown kind"},
           {key(kQ0, "lora_embedding_A.a.b"), "of an unknown kind"},
           {key(kQ0, "lora_A.a.b.weight"), "of an unknown kind"},
           {key(kQ0, "lora_C.weight"), "of an unknown kind"},
           {"model.layers.0.self_attn.q_proj.lora_A.weight", "does not begin with"},
           {key("model.norm", "weight"), "neither a LoRA weight nor a head"},
           {"base_model.model.weight", "of an unknown kind"},
           {"", "does not begin with"}}) {
    AdapterFolder folder;
    folder.tensors[name] = filled({4}, 0);
    EXPECT_THAT(folder.refusal(), HasSubstr("tensor \"" + name + "\""));
    EXPECT_THAT(folder.refusal(), HasSubstr(reason));
  }
  AdapterFolder bias;
  bias.tensors[key(kQ0, "bias")] = filled({4}, 0);
  EXPECT_THAT(bias.refusal(), HasSubstr("adapts " + std::string(kQ0) +
                                        " (its bias), which this version cannot serve"));
}

TEST(AdapterReader, SavedModulesWithoutTensorsAreRefused) {
  for (const char* saved : {"lm_head", "q_proj", "self_attn.q_proj", kQ1}) {
    AdapterFolder folder;
    folder.config["modules_to_save"] = {"score", saved};
    if (std::string(saved) != "lm_head") {  // PEFT does not target saved modules
      folder.config["target_modules"] = {"up_proj"};
      folder.tensors.clear();
      for (int layer = 0; layer < 2; ++layer)
        folder.add_lora("model.language_model.layers." + std::to_string(layer) + ".mlp.up_proj", 2,
                        kHidden, kInner);
    }
    EXPECT_THAT(folder.refusal(), HasSubstr("modules_to_save names " + std::string(saved) + ","));
    EXPECT_THAT(folder.refusal(), HasSubstr("(its whole weight), for which the file has no"));
  }
}

TEST(AdapterReader, ConfigurationErrorsPrecedeMissingTensors) {
  const AdapterFolder folder;
  const auto refusal = [&](const std::string& config) {
    folder.dir.write("adapter_config.json", config);
    return read_adapter(folder.dir.path(), testing::small_table(), {}).error().message;
  };
  EXPECT_THAT(refusal("{"), HasSubstr("adapter_config.json is not valid JSON"));
  EXPECT_THAT(refusal("[]"), ::testing::Not(HasSubstr("no adapter_model.safetensors")));
  EXPECT_THAT(refusal(R"({"peft_type":"LOHA"})"), HasSubstr("LOHA"));
  EXPECT_THAT(refusal(folder.config.dump()), HasSubstr("has no adapter_model.safetensors"));
  folder.dir.write("adapter_model.bin", "x");
  EXPECT_THAT(refusal("{"), HasSubstr("adapter_config.json"));
  EXPECT_THAT(refusal(folder.config.dump()), HasSubstr("adapter_model.bin"));
}

TEST(AdapterReader, ConfigurationAndFileMustAgree) {
  AdapterFolder untargeted;
  untargeted.config["exclude_modules"] = {"layers.1.self_attn.q_proj"};
  EXPECT_THAT(untargeted.refusal(),
              HasSubstr("for " + std::string(kQ1) + ", which the configuration does not"));
  AdapterFolder all;
  all.config["target_modules"] = "all-linear";
  for (int layer = 0; layer < 2; ++layer)
    all.add_lora("model.language_model.layers." + std::to_string(layer) + ".mlp.up_proj", 2,
                 kHidden, kInner);
  EXPECT_EQ(all.read()->targets.size(), 4u);
}

TEST(AdapterReader, LinearAdaptedInSomeLayersOnlyIsRefused) {
  AdapterFolder folder;
  folder.tensors.erase(key(kQ1, "lora_A.weight"));
  folder.tensors.erase(key(kQ1, "lora_B.weight"));
  for (const Json& targets : {Json{"q_proj"}, Json("all-linear"), Json(".*q_proj")}) {
    folder.config["target_modules"] = targets;
    EXPECT_THAT(folder.refusal(), HasSubstr("the file has no tensors for " + std::string(kQ1) +
                                            ", which the configuration targets"));
  }
  folder.config["target_modules"] = {"q_proj"};
  folder.config["layers_to_transform"] = 0;
  EXPECT_EQ(folder.refusal(), "accepted");
}

TEST(AdapterReader, LinearKindWithoutTensorsStaysUnadapted) {
  AdapterFolder folder;
  for (const Json& targets : {Json{"q_proj", "up_proj"}, Json("all-linear")}) {
    folder.config["target_modules"] = targets;
    const auto spec = folder.read();
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    EXPECT_EQ(spec->targets.size(), 2u);
    EXPECT_THAT(spec->warnings,
                ElementsAre("the configuration also targets " + std::string(kUp0) +
                            " and 1 more modules without tensors in the file; left as in the base "
                            "model"));
  }
}

// An expression written for an older release's names still reaches the tower under its newer names.
TEST(AdapterReader, OlderReleaseNamesGiveSameAdapter) {
  AdapterFolder folder;
  folder.config["target_modules"] = R"(^(model)(?!.*(lm_head|output|emb)).*)";
  folder.config["exclude_modules"] = {"up_proj"};
  const auto newer = folder.read();
  ASSERT_TRUE(newer.ok()) << newer.error().message;
  EXPECT_THAT(newer->warnings, ElementsAre(HasSubstr("also targets model.visual.blocks.0")));
  folder.tensors.clear();
  for (const char* layer : {"0", "1"})
    folder.add_lora(std::string("model.layers.") + layer + ".self_attn.q_proj", 2, kHidden,
                    kHidden);
  const auto older = folder.read();
  ASSERT_TRUE(older.ok()) << older.error().message;
  EXPECT_TRUE(older->warnings.empty());
  EXPECT_EQ(older->digest, newer->digest);
}

TEST(AdapterReader, UnservableTargetsWithoutTensorsWarn) {
  AdapterFolder folder;
  folder.config["target_modules"] = {"q_proj", "qkv", "lm_head"};
  const auto spec = folder.read();
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_THAT(
      spec->warnings,
      ElementsAre(HasSubstr("also targets model.visual.blocks.0.attn.qkv and 1 more modules")));
}

TEST(AdapterReader, RefusesBrokenTensorFiles) {
  AdapterFolder folder;
  ASSERT_TRUE(folder.read().ok());
  const auto refusal_of = [&](const std::string& text) {
    folder.dir.write("adapter_model.safetensors", text);
    return read_adapter(folder.dir.path(), testing::small_table(), {}).error().message;
  };
  const std::string whole = testing::safetensors_text(folder.tensors);
  EXPECT_THAT(refusal_of(whole.substr(0, whole.size() - 1)), HasSubstr("lies outside the file"));
  EXPECT_THAT(refusal_of(whole.substr(0, 100)), HasSubstr("truncated"));
  const std::string past_end = "{\"" + key(kQ0, "lora_A.weight") +
                               R"(":{"dtype":"F32","shape":[2,4],"data_offsets":[64,96]}})";
  EXPECT_THAT(refusal_of(testing::safetensors_text(past_end, "x")),
              HasSubstr("lies outside the file"));
  EXPECT_THAT(refusal_of("not safetensors"), HasSubstr("adapter_model.safetensors"));
}

TEST(AdapterReader, EmptyAdapterIsRefused) {
  AdapterFolder folder;
  folder.tensors.clear();
  folder.config["target_modules"] = Json::array();
  EXPECT_THAT(folder.refusal(), HasSubstr("is empty: it has neither"));
}

}  // namespace
}  // namespace valora::adapters
