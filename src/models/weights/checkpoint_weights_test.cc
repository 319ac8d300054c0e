// Recognising copies of a checkpoint's tensors, under all names and in all dtypes.
#include "models/weights/checkpoint_weights.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/temp_dir.h"
#include "models/registry.h"
#include "models/testing/tiny_towers.h"
#include "ops/weights/quantised_tensor.h"

namespace valora::models {
namespace {

constexpr char kEmbeddings[] = "model.language_model.embed_tokens.weight";

class CheckpointWeightsTest : public ::testing::Test {
 protected:
  void load(bool tied, at::ScalarType dtype = at::kFloat, const char* stored = "float32",
            bool head = true, Rounding rounding = {}) {
    testing::TinyTower tiny = testing::qwen2_vl();
    tiny.config["tie_word_embeddings"] = tied;
    tiny.config["torch_dtype"] = stored;
    if (!head) tiny.tensors.erase("lm_head.weight");
    dir_.write("config.json", tiny.config.dump());
    dir_.write("model.safetensors", tiny.tensors.text());
    loaded_ = load_model(dir_.path(), dtype, at::kCPU, ModelUse::kServing, rounding).value();
  }
  // A tensor of the checkpoint, as stored.
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

TEST_F(CheckpointWeightsTest, FindsTensorsByNamesOfAllReleases) {
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

TEST_F(CheckpointWeightsTest, OneDifferentValueMakesTensorsUnequal) {
  load(false);
  at::Tensor head = stored("lm_head.weight").flatten();
  EXPECT_TRUE(equal("lm_head.weight", head.slice(0, 5), DType::kF32, 5));
  EXPECT_FALSE(equal("lm_head.weight", head.slice(0, 5), DType::kF32, 4));
  head[-1] += 1e-6;
  EXPECT_FALSE(equal("lm_head.weight", head, DType::kF32));
  EXPECT_TRUE(equal("lm_head.weight", head.slice(0, 0, -1), DType::kF32));
}

TEST_F(CheckpointWeightsTest, TiedHeadResolvesToEmbedding) {
  load(true, at::kFloat, "float32", /*head=*/false);
  EXPECT_TRUE(equal("lm_head.weight", stored(kEmbeddings), DType::kF32));
  EXPECT_FALSE(equal("lm_head.weight", stored(kEmbeddings) + 1, DType::kF32));
}

// The checkpoint's own output layer is used if it has one.
TEST_F(CheckpointWeightsTest, StoredHeadOverridesTying) {
  load(true);
  EXPECT_TRUE(equal("lm_head.weight", stored("lm_head.weight"), DType::kF32));
  EXPECT_FALSE(equal("lm_head.weight", stored(kEmbeddings), DType::kF32));
}

// Two tensors count as equal if, and only if, they round to the same weights.
TEST_F(CheckpointWeightsTest, ComparesInModelDtype) {
  load(false);
  const at::Tensor head = stored("lm_head.weight"), rounded = head.to(at::kBFloat16);
  EXPECT_FALSE(equal("lm_head.weight", rounded, DType::kBF16));
  load(false, at::kBFloat16);
  EXPECT_TRUE(equal("lm_head.weight", rounded, DType::kBF16));
  EXPECT_TRUE(equal("lm_head.weight", head, DType::kF32));
  EXPECT_FALSE(equal("lm_head.weight", 1.01 * head, DType::kF32));
}

TensorView float_view(const at::Tensor& x) {
  return {
      DType::kF32, x.sizes().vec(), {static_cast<const uint8_t*>(x.const_data_ptr()), x.nbytes()}};
}

// Norms of W + scale · B A, where W is the matrix that the model multiplies with.
TEST_F(CheckpointWeightsTest, NormsUseServedWeights) {
  constexpr char kQuery[] = "model.language_model.layers.0.self_attn.q_proj";
  constexpr int64_t kTokens = 10, kHidden = testing::kOut;
  at::manual_seed(1);
  const at::Tensor a = at::randn({2, kHidden}), b = at::randn({kHidden, 2}),
                   of_tokens = at::randn({2, kTokens}), head_b = at::randn({kTokens, 2});
  for (const int to : {0, 8, 4}) {
    Rounding rounding;
    if (to > 0) rounding.weights = ops::Quantisation{to, 32};
    load(true, at::kFloat, "float32", /*head=*/false, rounding);
    const CheckpointWeights weights(loaded_);
    const auto served = [&](const std::string& name, int bits) {
      return to == 0 ? stored(name) : ops::quantise(stored(name), {bits, 32}).decoded();
    };
    const auto expect = [&](const Result<std::vector<float>>& norms, const at::Tensor& sum) {
      ASSERT_TRUE(norms.ok()) << norms.error().message;
      EXPECT_TRUE(at::allclose(at::tensor(*norms), sum.pow(2).sum(1).sqrt(), 1e-4, 1e-5));
    };
    expect(weights.row_norms(kQuery, float_view(a), float_view(b), 0.5f),
           served(std::string(kQuery) + ".weight", to) + 0.5 * at::mm(b, a));
    expect(weights.row_norms("lm_head", float_view(a), float_view(head_b), 2),
           served(kEmbeddings, 8) + 2 * at::mm(head_b, a));
    expect(weights.column_norms("model.language_model.embed_tokens", float_view(of_tokens),
                                float_view(b), 0.5f),
           stored(kEmbeddings).t() + 0.5 * at::mm(b, of_tokens));
  }
  EXPECT_FALSE(CheckpointWeights(loaded_).row_norms("none", float_view(a), float_view(b), 1).ok());
}

TEST_F(CheckpointWeightsTest, ChangedFileFailsComparison) {
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
