// Embeddings, output layers, rows of tokens and biases in an adapter's file.
#include "adapters/tensors/whole_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/folder/adapter_parts.h"
#include "adapters/testing/adapter_folder.h"
#include "adapters/testing/fake_base.h"

namespace valora::adapters {
namespace {

using testing::AdapterFolder;
using ::testing::ElementsAre;
using testing::f32_tensor;
using testing::FakeBase;
using testing::filled;
using ::testing::HasSubstr;
using testing::kHidden;
using testing::kQ0;

constexpr int64_t kTokens = 40;
constexpr const char* kEmbedding = "model.language_model.embed_tokens";
const std::string kEmbeddingWeight = AdapterFolder::key(kEmbedding, "weight"),
                  kHeadWeight = AdapterFolder::key("lm_head", "weight"),
                  kRows = AdapterFolder::key(kEmbedding, "token_adapter.trainable_tokens_delta");

ModuleTable whole_table() {
  return ModuleTable({{kQ0, kHidden, kHidden, 0},
                      {testing::kQ1, kHidden, kHidden, 1},
                      {kEmbedding, kTokens, kHidden, -1, false, ModuleKind::kEmbedding},
                      {"lm_head", kHidden, kTokens, -1, false, ModuleKind::kHead}},
                     {{"model.", "model.language_model."}}, kHidden);
}

class WholeValuesTest : public ::testing::Test {
 protected:
  FakeBase base(bool tied) const {
    FakeBase base(tied);
    std::vector<float> values(kTokens * kHidden);
    base.add(std::string(kEmbedding) + ".weight", {kTokens, kHidden}, values);
    base.add("lm_head.weight", {kTokens, kHidden}, values);
    base.add(std::string(kQ0) + ".bias", {kHidden}, {1, 2, 3, 4});
    return base;
  }
  Result<AdapterSpec> read(bool tied = false, bool values = true) {
    folder_.write();
    return values ? read_adapter(folder_.dir.path(), whole_table(), {}, base(tied))
                  : read_adapter_headers(folder_.dir.path(), whole_table(), {}, base(tied));
  }
  std::string refusal(bool tied = false) {
    const auto spec = read(tied);
    return spec.ok() ? "accepted" : spec.error().message;
  }
  // All values of a part; checks that they arrive in whole rows.
  std::vector<float> values_of(const AdapterPart& part) {
    std::vector<float> values;
    const Status status = read_part(
        folder_.dir.path(), part, {}, [&](int64_t first, const TensorView& rows) -> Status {
          EXPECT_EQ(first * part.columns, static_cast<int64_t>(values.size()));
          EXPECT_TRUE(first % kPartRowsTogether == 0 && rows.shape[1] == part.columns);
          const auto* begin = reinterpret_cast<const float*>(rows.bytes.data());
          values.insert(values.end(), begin, begin + rows.shape[0] * rows.shape[1]);
          return {};
        });
    EXPECT_TRUE(status.ok()) << status.error().message;
    return values;
  }

  AdapterFolder folder_;
};

TEST_F(WholeValuesTest, LowRankProductsOnTheEmbeddingAreTransposed) {
  folder_.config["target_modules"].push_back("embed_tokens");
  folder_.tensors[AdapterFolder::key(kEmbedding, "lora_embedding_A")] = filled({2, kTokens}, 0);
  folder_.tensors[AdapterFolder::key(kEmbedding, "lora_embedding_B.default")] =
      filled({kHidden, 2}, -1);
  const auto spec = read();
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->targets.size(), 2u);  // the targets on linears
  EXPECT_EQ(spec->vocabulary.scale, 1.5f);
  ASSERT_EQ(spec->vocabulary.embedding_lora, 0);
  const auto values = values_of(spec->parts[0]);
  ASSERT_EQ(values.size(), 2u * (kTokens + kHidden));
  EXPECT_EQ(values[1], 0.25f * kTokens);       // A[1][0]
  EXPECT_EQ(values[2], 0.25f);                 // A[0][1]
  EXPECT_EQ(values[2 * kTokens + 3], -0.25f);  // B[1][1]
  EXPECT_FALSE(spec->replaces);
  EXPECT_EQ(read(false, false)->parts[0].digest, spec->parts[0].digest);
  EXPECT_EQ(read(true)->vocabulary.head, -1);  // as in PEFT, the output layer is unchanged
  folder_.config["ensure_weight_tying"] = true;
  EXPECT_THAT(refusal(true), HasSubstr("ensure_weight_tying with LoRA"));
  EXPECT_EQ(refusal(false), "accepted");
}

TEST_F(WholeValuesTest, WholeMatricesBecomeParts) {
  folder_.config["modules_to_save"] = {"embed_tokens", "lm_head"};
  folder_.tensors[kEmbeddingWeight] = filled({kTokens, kHidden}, 1);
  folder_.tensors[kHeadWeight] = filled({kTokens, kHidden}, 2);
  const auto spec = read();
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  ASSERT_EQ(spec->parts.size(), 2u);
  EXPECT_TRUE(spec->replaces);
  EXPECT_EQ(values_of(spec->parts[spec->vocabulary.embedding])[5], 1 + 5 * 0.25f);
  EXPECT_EQ(values_of(spec->parts[spec->vocabulary.head])[5], 2 + 5 * 0.25f);
  const auto lazy = read(false, false);
  EXPECT_EQ(lazy->parts[0].digest, spec->parts[0].digest);
  EXPECT_EQ(spec->panels_digest,
            read_adapter_again(folder_.dir.path(), whole_table(), {}, true)->digest);

  folder_.tensors[kHeadWeight] = filled({kTokens, kHidden}, 3);
  const auto other = read();
  EXPECT_EQ(other->parts[other->vocabulary.embedding].digest,
            spec->parts[spec->vocabulary.embedding].digest);  // shared
  EXPECT_NE(other->digest, spec->digest);
  const Status status = read_part(folder_.dir.path(), spec->parts[spec->vocabulary.head], {},
                                  [](int64_t, const TensorView&) -> Status { return {}; });
  EXPECT_EQ(status.error().code, ErrorCode::kConflict);
}

TEST_F(WholeValuesTest, TiedMatricesShareOnePartUnlessBothSaved) {
  folder_.tensors[kEmbeddingWeight] = filled({kTokens, kHidden}, 1);
  EXPECT_EQ(read(false)->parts.size(), 1u);
  auto spec = read(true);
  ASSERT_EQ(spec->parts.size(), 2u);
  EXPECT_EQ(values_of(spec->parts[spec->vocabulary.head]),
            values_of(spec->parts[spec->vocabulary.embedding]));
  folder_.config["modules_to_save"] = {"embed_tokens"};
  EXPECT_EQ(read(true)->vocabulary.head, -1);
  folder_.config["ensure_weight_tying"] = true;
  EXPECT_GE(read(true)->vocabulary.head, 0);
  folder_.config["modules_to_save"] = Json();
  folder_.tensors[kHeadWeight] = filled({kTokens, kHidden}, 2);
  EXPECT_THAT(refusal(true), HasSubstr("different weights"));
  folder_.tensors[kHeadWeight] =
      f32_tensor({kTokens, kHidden}, std::vector<float>(kTokens * kHidden));  // the base's
  EXPECT_THAT(refusal(true), HasSubstr("different weights"));
}

TEST_F(WholeValuesTest, TokenRowsKeepTheirIds) {
  folder_.config["trainable_token_indices"] = {7, 3};
  folder_.tensors[kRows] = filled({2, kHidden}, 1);
  const auto spec = read();
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_THAT(spec->vocabulary.embedding_ids, ElementsAre(7, 3));
  EXPECT_EQ(spec->vocabulary.head_rows, -1);
  EXPECT_EQ(values_of(spec->parts[0])[4], 2);
  const auto tied = read(true);
  EXPECT_EQ(tied->vocabulary.head_rows, tied->vocabulary.embedding_rows);
  EXPECT_THAT(tied->vocabulary.head_ids, ElementsAre(7, 3));

  folder_.config["trainable_token_indices"] = {7, kTokens + 1};
  EXPECT_THAT(refusal(),
              HasSubstr("the token 41, but model.language_model.embed_tokens of the base"));
  folder_.config["trainable_token_indices"] = {7, kTokens};
  EXPECT_THAT(refusal(), HasSubstr("embedding is of 41 tokens, its output layer of 40"));
  EXPECT_EQ(read(true)->vocabulary.tokens, kTokens + 1);  // the rows apply to both layers
  folder_.config["trainable_token_indices"] = {7};
  EXPECT_THAT(refusal(), HasSubstr("have shape [2, 4]"));
  folder_.config["trainable_token_indices"] = {{"lm_head", {7, 3}}};
  EXPECT_THAT(refusal(), HasSubstr("names rows of lm_head"));
  folder_.config["trainable_token_indices"] = Json();
  EXPECT_THAT(refusal(), HasSubstr("does not name"));
  folder_.config["trainable_token_indices"] = {{"up_proj", {7}}};
  EXPECT_THAT(refusal(), HasSubstr("neither the embedding nor the output layer"));
}

TEST_F(WholeValuesTest, BiasesBecomeShifts) {
  folder_.config["bias"] = "lora_only";
  folder_.tensors[AdapterFolder::key(kQ0, "base_layer.bias")] = f32_tensor({kHidden}, {2, 2, 2, 2});
  const auto spec = read();
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  ASSERT_EQ(spec->shifts.size(), 1u);
  EXPECT_THAT(spec->shifts[0].values, ElementsAre(1, 0, -1, -2));
  EXPECT_TRUE(spec->replaces);
  EXPECT_EQ(read(false, false)->shifts[0].values, spec->shifts[0].values);
  folder_.config["bias"] = "none";
  EXPECT_THAT(refusal(), HasSubstr("its bias: it differs"));
}

TEST_F(WholeValuesTest, BiasesOfLowRankProductsAreScaled) {
  folder_.config["lora_bias"] = true;
  EXPECT_THAT(refusal(), HasSubstr("has no bias of lora_B, but lora_bias is set"));
  for (const char* module : {kQ0, testing::kQ1})
    folder_.tensors[AdapterFolder::key(module, "lora_B.bias")] =
        f32_tensor({kHidden}, {2, 4, 6, 8});
  const auto spec = read();
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  ASSERT_EQ(spec->shifts.size(), 2u);
  EXPECT_THAT(spec->shifts[1].values, ElementsAre(3, 6, 9, 12));
  EXPECT_FALSE(spec->replaces);
  folder_.config["lora_bias"] = false;
  EXPECT_THAT(refusal(), HasSubstr("has a bias of lora_B, but lora_bias is not set"));
}

TEST_F(WholeValuesTest, MagnitudesBecomeGains) {
  folder_.config["use_dora"] = true;
  EXPECT_THAT(refusal(), HasSubstr("has no magnitude, but use_dora is set"));
  folder_.tensors[AdapterFolder::key(kQ0, "lora_magnitude_vector")] =
      f32_tensor({kHidden}, {3, 6, 9, 12});
  folder_.tensors[AdapterFolder::key(testing::kQ1, "lora_magnitude_vector.default.weight")] =
      f32_tensor({kHidden}, {3, 3, 3, 3});
  const auto spec = read();
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  ASSERT_EQ(spec->gains.size(), 2u);
  EXPECT_THAT(spec->gains[0].values, ElementsAre(2, 4, 6, 8));  // divided by norms of 1.5
  EXPECT_TRUE(spec->replaces && spec->shifts.empty());
  EXPECT_EQ(read(false, false)->gains[0].values, spec->gains[0].values);  // DoRA needs all values
  folder_.config["use_dora"] = false;
  EXPECT_THAT(refusal(), HasSubstr("has a magnitude, but use_dora is not set"));
}

TEST_F(WholeValuesTest, LowRankProductOnResizedOutputLayerBecomesPart) {
  constexpr int64_t kMore = kTokens + 3;
  folder_.config["target_modules"].push_back("lm_head");
  folder_.config["modules_to_save"] = {"embed_tokens"};
  folder_.tensors[kEmbeddingWeight] = filled({kMore, kHidden}, 1);
  folder_.tensors[AdapterFolder::key("lm_head", "lora_A.weight")] = filled({2, kHidden}, 0);
  folder_.tensors[AdapterFolder::key("lm_head", "lora_B.weight")] = filled({kMore, 2}, -1);
  EXPECT_THAT(refusal(), HasSubstr("lm_head covers 43 tokens, but its weights cover 40"));
  folder_.tensors[kHeadWeight] = filled({kMore, kHidden}, 2);
  const auto spec = read();
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->targets.size(), 2u);  // of the linears
  EXPECT_EQ(spec->vocabulary.tokens, kMore);
  EXPECT_EQ(spec->vocabulary.head_scale, 1.5f);
  ASSERT_GE(spec->vocabulary.head_lora, 0);
  const AdapterPart& part = spec->parts[static_cast<size_t>(spec->vocabulary.head_lora)];
  const auto values = values_of(part);
  ASSERT_EQ(values.size(), 2u * (kHidden + kMore));
  EXPECT_EQ(values[1], 0.25f * kHidden);       // A[1][0]
  EXPECT_EQ(values[2 * kHidden + 3], -0.25f);  // B[1][1]
  const auto lazy = read(false, false);
  EXPECT_EQ(lazy->parts[static_cast<size_t>(lazy->vocabulary.head_lora)].digest, part.digest);
  EXPECT_EQ(spec->panels_digest,
            read_adapter_again(folder_.dir.path(), whole_table(), {}, true)->digest);
}

TEST_F(WholeValuesTest, EmbeddingMagnitudeBecomesGain) {
  folder_.config["use_dora"] = true;
  folder_.config["target_modules"].push_back("embed_tokens");
  folder_.tensors[AdapterFolder::key(kEmbedding, "lora_embedding_A")] = filled({2, kTokens}, 0);
  folder_.tensors[AdapterFolder::key(kEmbedding, "lora_embedding_B")] = filled({kHidden, 2}, -1);
  for (const char* linear : {kQ0, testing::kQ1})
    folder_.tensors[AdapterFolder::key(linear, "lora_magnitude_vector")] =
        f32_tensor({kHidden}, {3, 3, 3, 3});
  EXPECT_THAT(refusal(), HasSubstr("embed_tokens has no magnitude, but use_dora is set"));
  const std::string magnitude = AdapterFolder::key(kEmbedding, "lora_magnitude_vector");
  folder_.tensors[magnitude] = f32_tensor({kTokens}, std::vector<float>(kTokens));
  EXPECT_THAT(refusal(), HasSubstr("the module requires [4]"));
  folder_.tensors[magnitude] = f32_tensor({kHidden}, {3, 6, 9, 12});
  const auto spec = read();
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_THAT(spec->vocabulary.embedding_gain, ElementsAre(2, 4, 6, 8));  // divided by norms of 1.5
  EXPECT_TRUE(spec->replaces);
  EXPECT_EQ(spec->gains.size(), 2u);  // of the linears
  EXPECT_EQ(read(false, false)->vocabulary.embedding_gain, spec->vocabulary.embedding_gain);
  folder_.tensors[magnitude] = f32_tensor({kHidden}, {3, 6, 9, 11});
  EXPECT_NE(read()->digest, spec->digest);
  folder_.tensors[kEmbeddingWeight] = filled({kTokens, kHidden}, 1);
  EXPECT_THAT(refusal(), HasSubstr("a whole embedding, and a magnitude"));
}

}  // namespace
}  // namespace valora::adapters
