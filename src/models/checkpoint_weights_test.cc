// Copies of a checkpoint's tensors, by all names and in all dtypes.
#include "models/checkpoint_weights.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/temp_dir.h"
#include "models/registry.h"
#include "models/testing/tiny_towers.h"

namespace valora::models {
namespace {

constexpr char kEmbeddings[] = "model.language_model.embed_tokens.weight";

class CheckpointWeightsTest : public ::testing::Test {
 protected:
  void load(bool tied, at::ScalarType dtype = at::kFloat, const char* stored = "float32",
            bool head = true) {
    testing::TinyTower tiny = testing::qwen2_vl();
    tiny.config["tie_word_embeddings"] = tied;
    tiny.config["torch_dtype"] = stored;
    if (!head) tiny.tensors.erase("lm_head.weight");
    dir_.write("config.json", tiny.config.dump());
    dir_.write("model.safetensors", tiny.tensors.text());
    loaded_ = load_model(dir_.path(), dtype, at::kCPU).value();
  }
  // The checkpoint's values, as stored.
  at::Tensor stored(const std::string& name) {
    const auto file = SafeTensors::open(dir_.file("model.safetensors")).value();
    return tensor_of(*file->find(name)).clone();
  }
  bool equal(const std::string& name, const at::Tensor& values, DType dtype, size_t first = 0) {
    const at::Tensor flat = values.flatten().contiguous();
    const std::span bytes(static_cast<const uint8_t*>(flat.const_data_ptr()), flat.nbytes());
    return CheckpointWeights(loaded_).equal(name, first, {dtype, {flat.numel()}, bytes}).value();
  }

  valora::testing::TempDir dir_;
  LoadedModel loaded_;
};

TEST_F(CheckpointWeightsTest, AreFoundByTheNamesOfAllReleases) {
  load(false);
  const at::Tensor norm = stored("model.language_model.norm.weight");
  for (const char* name : {"model.language_model.norm.weight", "model.norm.weight",
                           "language_model.model.norm.weight"})
    EXPECT_TRUE(equal(name, norm, DType::kF32)) << name;
  EXPECT_TRUE(equal("model.embed_tokens.weight", stored(kEmbeddings), DType::kF32));
  EXPECT_EQ(CheckpointWeights(loaded_).shape_of("model.layers.0.self_attn.q_proj.bias"),
            std::vector<int64_t>{testing::kOut});
  for (const char* name : {"score.weight", "norm.weight", "weight", "", "model.layers.0"})
    EXPECT_FALSE(CheckpointWeights(loaded_).shape_of(name)) << name;
}

TEST_F(CheckpointWeightsTest, DifferIfOneValueDoes) {
  load(false);
  at::Tensor head = stored("lm_head.weight").flatten();
  EXPECT_TRUE(equal("lm_head.weight", head.slice(0, 5), DType::kF32, 5));
  EXPECT_FALSE(equal("lm_head.weight", head.slice(0, 5), DType::kF32, 4));
  head[-1] += 1e-6;
  EXPECT_FALSE(equal("lm_head.weight", head, DType::kF32));
  EXPECT_TRUE(equal("lm_head.weight", head.slice(0, 0, -1), DType::kF32));
}

TEST_F(CheckpointWeightsTest, TheHeadOfTiedEmbeddingsIsTheEmbeddings) {
  load(true, at::kFloat, "float32", /*head=*/false);
  EXPECT_TRUE(equal("lm_head.weight", stored(kEmbeddings), DType::kF32));
  EXPECT_FALSE(equal("lm_head.weight", stored(kEmbeddings) + 1, DType::kF32));
}

// What the checkpoint has as an output layer is used.
TEST_F(CheckpointWeightsTest, AStoredHeadIsTheHead) {
  load(true);
  EXPECT_TRUE(equal("lm_head.weight", stored("lm_head.weight"), DType::kF32));
  EXPECT_FALSE(equal("lm_head.weight", stored(kEmbeddings), DType::kF32));
}

// The answer is the same if both are rounded to the same weights, and only then.
TEST_F(CheckpointWeightsTest, AreComparedInTheDtypeOfTheModel) {
  load(false);
  const at::Tensor head = stored("lm_head.weight"), rounded = head.to(at::kBFloat16);
  EXPECT_FALSE(equal("lm_head.weight", rounded, DType::kBF16));
  load(false, at::kBFloat16);
  EXPECT_TRUE(equal("lm_head.weight", rounded, DType::kBF16));
  EXPECT_TRUE(equal("lm_head.weight", head, DType::kF32));
  EXPECT_FALSE(equal("lm_head.weight", 1.01 * head, DType::kF32));
}

TEST_F(CheckpointWeightsTest, AChangedFileIsAnError) {
  load(false);
  const at::Tensor head = stored("lm_head.weight");
  std::ofstream(dir_.file("model.safetensors"), std::ios::app) << "x";
  const std::span bytes(static_cast<const uint8_t*>(head.const_data_ptr()), head.nbytes());
  EXPECT_FALSE(CheckpointWeights(loaded_)
                   .equal("lm_head.weight", 0, {DType::kF32, {head.numel()}, bytes})
                   .ok());
}

}  // namespace
}  // namespace valora::models
