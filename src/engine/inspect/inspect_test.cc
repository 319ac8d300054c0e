#include "engine/inspect/inspect.h"

#include <gmock/gmock.h>

#include "base/testing/safetensors_text.h"
#include "base/testing/temp_dir.h"

namespace valora {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using valora::testing::RawTensor;
using valora::testing::TempDir;

constexpr int64_t kStoredVocab = 259, kStoredHidden = 8, kStoredInner = 12;

RawTensor zeros(std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  return valora::testing::f32_tensor(std::move(shape),
                                     std::vector<float>(static_cast<size_t>(count)));
}

// A one-layer Qwen2 folder with a byte tokenizer, for tests to damage.
struct ModelFolder {
  ModelFolder() {
    config = {{"architectures", {"Qwen2ForCausalLM"}},
              {"vocab_size", kStoredVocab},
              {"hidden_size", kStoredHidden},
              {"intermediate_size", kStoredInner},
              {"num_hidden_layers", 1},
              {"num_attention_heads", 2},
              {"num_key_value_heads", 1},
              {"max_position_embeddings", 64},
              {"tie_word_embeddings", true},
              {"eos_token_id", 0},
              {"torch_dtype", "float32"}};
    tensors["model.embed_tokens.weight"] = zeros({kStoredVocab, kStoredHidden});
    tensors["model.norm.weight"] = zeros({kStoredHidden});
    const std::string layer = "model.layers.0.";
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
      tensors[layer + norm + ".weight"] = zeros({kStoredHidden});
    add_linear(layer + "self_attn.q_proj", 8, kStoredHidden, true);
    add_linear(layer + "self_attn.k_proj", 4, kStoredHidden, true);
    add_linear(layer + "self_attn.v_proj", 4, kStoredHidden, true);
    add_linear(layer + "self_attn.o_proj", kStoredHidden, 8, false);
    add_linear(layer + "mlp.gate_proj", kStoredInner, kStoredHidden, false);
    add_linear(layer + "mlp.up_proj", kStoredInner, kStoredHidden, false);
    add_linear(layer + "mlp.down_proj", kStoredHidden, kStoredInner, false);
  }

  void add_linear(const std::string& name, int64_t out, int64_t in, bool bias) {
    tensors[name + ".weight"] = zeros({out, in});
    if (bias) tensors[name + ".bias"] = zeros({out});
  }

  static Json tokenizer() {
    Json vocab = Json::object();
    for (int i = 0; i < 256; ++i) vocab["t" + std::to_string(i)] = i;
    Json added = Json::array();
    for (const char* text : {"<|im_start|>", "<|im_end|>", "<|endoftext|>"})
      added.push_back({{"id", 256 + added.size()},
                       {"content", text},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
    return {{"version", "1.0"},
            {"truncation", nullptr},
            {"padding", nullptr},
            {"added_tokens", added},
            {"normalizer", nullptr},
            {"pre_tokenizer",
             {{"type", "ByteLevel"},
              {"add_prefix_space", false},
              {"trim_offsets", true},
              {"use_regex", true}}},
            {"post_processor", nullptr},
            {"decoder",
             {{"type", "ByteLevel"},
              {"add_prefix_space", true},
              {"trim_offsets", true},
              {"use_regex", true}}},
            {"model",
             {{"type", "BPE"},
              {"dropout", nullptr},
              {"unk_token", nullptr},
              {"continuing_subword_prefix", nullptr},
              {"end_of_word_suffix", nullptr},
              {"fuse_unk", false},
              {"byte_fallback", false},
              {"ignore_merges", false},
              {"vocab", vocab},
              {"merges", Json::array()}}}};
  }

  ModelReport inspect(ComputeDtype dtype = ComputeDtype::kAuto) const {
    dir.write("config.json", config.dump());
    dir.write("tokenizer.json", tokenizer().dump());
    dir.write("model.safetensors", valora::testing::safetensors_text(tensors));
    return inspect_model(dir.path(), dtype);
  }

  TempDir dir;
  Json config;
  std::map<std::string, RawTensor> tensors;
};

TEST(InspectModel, DescribesServableModel) {
  const ModelReport report = ModelFolder().inspect();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.architecture, "Qwen2ForCausalLM");
  EXPECT_TRUE(report.known_architecture);
  EXPECT_EQ(report.attention_heads, 2);
  EXPECT_EQ(report.spec->max_positions, 64);
  EXPECT_FALSE(report.spec->image_token);
  EXPECT_EQ(report.tokenizer_size, kStoredVocab);
  EXPECT_THAT(*report.chat_example, HasSubstr("user\nHi"));
  const int64_t parameters = kStoredVocab * kStoredHidden + 3 * kStoredHidden +
                             (8 + 4 + 4) * (kStoredHidden + 1) + kStoredHidden * 8 +
                             3 * kStoredInner * kStoredHidden;
  EXPECT_EQ(report.stored->parameters, parameters);
  EXPECT_EQ(report.stored->bytes, static_cast<size_t>(parameters) * 4);
  EXPECT_EQ(report.served->dtype, "float32");
  EXPECT_EQ(report.served->bytes,
            static_cast<size_t>(parameters + kStoredVocab * kStoredHidden) *
                4);  // tied: as rows and as panels
  EXPECT_EQ(report.served->kv_bytes_per_token,
            1 * 1 * (4 + 16) * 4);  // layers, heads, K and V (in whole panels), bytes
  EXPECT_EQ(report.served->kv_dtype, "float32");
  EXPECT_EQ(report.served->plan.max_model_len, 64);
}

TEST(InspectModel, CountsTheBytesOfACacheInEightBits) {
  ModelFolder folder;
  EXPECT_TRUE(folder.inspect().problems.empty());  // also writes the folder
  const ModelReport report =
      inspect_model(folder.dir.path(), ComputeDtype::kAuto, KvCacheDtype::kInt8);
  EXPECT_EQ(report.served->kv_dtype, "int8");
  EXPECT_EQ(report.served->kv_bytes_per_token, 4 + 16 + 2 * 2) << "keys, values, scales";
}

TEST(InspectModel, AsksForEveryTensorAndItsShape) {
  ModelFolder folder;
  folder.tensors.erase("model.layers.0.mlp.up_proj.weight");
  EXPECT_THAT(folder.inspect().problems,
              ElementsAre(HasSubstr("no tensor model.layers.0.mlp.up_proj.weight")));
  folder.add_linear("model.layers.0.mlp.up_proj", kStoredInner, kStoredHidden + 1, false);
  const ModelReport report = folder.inspect();
  EXPECT_THAT(report.problems, ElementsAre(HasSubstr("up_proj.weight has shape [12, 9]")));
  EXPECT_FALSE(report.served);
  EXPECT_TRUE(report.stored);
}

TEST(InspectModel, WarnsOfUnusedTensors) {
  ModelFolder folder;
  folder.tensors["model.extra.weight"] = zeros({2});
  const ModelReport report = folder.inspect();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_THAT(report.warnings, Contains("tensor model.extra.weight is not used"));
}

TEST(InspectModel, ListsEveryProblem) {
  ModelFolder folder;
  EXPECT_THAT(folder.inspect(ComputeDtype::kFloat16).problems,
              ElementsAre(HasSubstr("float16 is served on GPUs only")));
  folder.config["layer_types"] = {"chunked_attention"};
  EXPECT_THAT(folder.inspect().problems, ElementsAre(HasSubstr("chunked_attention")));
  folder.config["architectures"] = {"OtherForCausalLM"};
  const ModelReport other = folder.inspect();
  EXPECT_EQ(other.architecture, "OtherForCausalLM");
  EXPECT_FALSE(other.known_architecture);
  EXPECT_THAT(other.problems, ElementsAre(HasSubstr("OtherForCausalLM is not supported")));
}

TEST(InspectModel, TokenizerLargerThanVocabularyIsAccepted) {
  ModelFolder folder;
  folder.config["vocab_size"] = kStoredVocab - 1;
  folder.tensors["model.embed_tokens.weight"] = zeros({kStoredVocab - 1, kStoredHidden});
  EXPECT_THAT(folder.inspect().problems, IsEmpty());
}

class InspectAdapter : public ::testing::Test {
 protected:
  InspectAdapter() {
    model_.inspect();
    add("model.layers.0.mlp.up_proj", kStoredInner, kStoredHidden);
  }
  void add(const std::string& module, int64_t out, int64_t in) {
    tensors_["base_model.model." + module + ".lora_A.weight"] = zeros({2, in});
    tensors_["base_model.model." + module + ".lora_B.weight"] = zeros({out, 2});
  }
  AdapterReport inspect(bool with_model) const {
    dir_.write(
        "adapter_config.json",
        R"({"peft_type":"LORA","r":2,"lora_alpha":3,"target_modules":["up_proj","extra"],"modules_to_save":["score"],
                                          "base_model_name_or_path":"some/model"})");
    dir_.write("adapter_model.safetensors", valora::testing::safetensors_text(tensors_));
    return inspect_adapter(dir_.path(), with_model ? model_.dir.path() : "", {});
  }

  ModelFolder model_;
  TempDir dir_;
  std::map<std::string, RawTensor> tensors_;
};

TEST_F(InspectAdapter, ReportIsSameWithAndWithoutModel) {
  tensors_["base_model.model.score.weight"] = zeros({3, kStoredHidden});
  for (const bool with_model : {false, true}) {
    const AdapterReport report = inspect(with_model);
    EXPECT_THAT(report.problems, IsEmpty()) << with_model;
    EXPECT_EQ(report.base_model, "some/model");
    ASSERT_EQ(report.spec->targets.size(), 1u);
    EXPECT_EQ(report.modules.modules()[report.spec->targets[0].module].name,
              "model.layers.0.mlp.up_proj");
    EXPECT_EQ(report.spec->targets[0].rank, 2);
    EXPECT_EQ(report.spec->targets[0].scale, 1.5f);
    ASSERT_EQ(report.spec->heads.size(), 1u);
    EXPECT_EQ(report.spec->heads[0].labels.size(), 3u);
  }
}

TEST_F(InspectAdapter, UnknownModuleIsReportedOnlyWithModel) {
  add("model.layers.7.mlp.extra", kStoredInner, kStoredHidden);
  EXPECT_THAT(inspect(false).problems, IsEmpty());
  EXPECT_THAT(inspect(true).problems, ElementsAre(HasSubstr("model.layers.7.mlp.extra")));
}

TEST_F(InspectAdapter, BrokenFilesAreReportedWithoutModel) {
  tensors_.erase("base_model.model.model.layers.0.mlp.up_proj.lora_B.weight");
  EXPECT_THAT(inspect(false).problems, ElementsAre(HasSubstr("no lora_B")));
  tensors_ = {{"other.tensor", zeros({2})}};
  EXPECT_THAT(inspect(false).problems, ElementsAre(HasSubstr("other.tensor")));
}

TEST(FolderKind, FollowsFilesInFolder) {
  const TempDir dir;
  EXPECT_EQ(folder_kind(dir.path()).error().code, ErrorCode::kNotFound);
  dir.write("config.json", "{}");
  EXPECT_EQ(folder_kind(dir.path()).value(), FolderKind::kModel);
  dir.write("adapter_config.json", "{}");
  EXPECT_EQ(folder_kind(dir.path()).value(), FolderKind::kAdapter);
  EXPECT_EQ(folder_kind(dir.file("none")).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace valora
