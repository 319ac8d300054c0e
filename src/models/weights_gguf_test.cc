// GGUF files as checkpoints. Answers are compared in tests/parity/test_gguf.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/gguf_text.h"
#include "base/testing/temp_dir.h"
#include "models/spec/gguf_config.h"
#include "models/spec/load_error.h"
#include "models/weights.h"

namespace valora::models {
namespace {

using ::testing::HasSubstr;
using valora::testing::gguf_f32;
using valora::testing::gguf_list;
using valora::testing::gguf_string;
using valora::testing::gguf_text;
using valora::testing::gguf_u32;
using valora::testing::GgufRawTensor;

constexpr int64_t kWidth = 32, kHead = 8;

GgufRawTensor floats_of(const std::string& name, std::vector<uint64_t> sizes,
                        const std::vector<float>& values) {
  std::string bytes(values.size() * 4, '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {name, std::move(sizes), 0, std::move(bytes)};
}

// Rows of Q8_0, one block each: the integers are the row's number plus the input's.
GgufRawTensor integer_rows(const std::string& name, uint64_t rows,
                           uint16_t scale = 0x3C00 /* 1 */) {
  std::string bytes;
  for (uint64_t row = 0; row < rows; ++row) {
    bytes += valora::testing::gguf_bytes(scale);
    for (int64_t i = 0; i < kWidth; ++i) bytes += static_cast<char>(row + static_cast<uint64_t>(i));
  }
  return {name, {kWidth, rows}, 8, std::move(bytes)};
}

std::vector<std::string> settings(const std::string& architecture,
                                  std::vector<std::string> more = {}) {
  std::vector<std::string> entries{gguf_string("general.architecture", architecture)};
  for (const auto& [key, value] : {std::pair("context_length", 128),
                                   {"embedding_length", 32},
                                   {"block_count", 1},
                                   {"feed_forward_length", 64},
                                   {"attention.head_count", 4}})
    entries.push_back(gguf_u32(architecture + "." + key, static_cast<uint32_t>(value)));
  entries.push_back(gguf_f32(architecture + ".attention.layer_norm_rms_epsilon", 1e-6f));
  entries.push_back(gguf_string("tokenizer.ggml.model", "gpt2"));
  entries.push_back(gguf_list<std::string>("tokenizer.ggml.tokens", 8, {"a", "b"}));
  entries.push_back(gguf_u32("tokenizer.ggml.eos_token_id", 1));
  entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

class GgufWeightsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Weights> open(std::vector<GgufRawTensor> tensors,
                                const std::string& architecture = "llama",
                                std::vector<std::string> more = {}) {
    auto weights =
        Weights::open(dir_.write("m.gguf", gguf_text(settings(architecture, more), tensors)));
    EXPECT_TRUE(weights.ok()) << weights.error().message;
    return std::move(weights).value();
  }
  valora::testing::TempDir dir_;
};

const GgufRawTensor kEmbedding = integer_rows("token_embd.weight", 2);

TEST_F(GgufWeightsTest, QueriesAreServedInTheOrderOfTransformers) {
  auto weights = open({kEmbedding, integer_rows("blk.0.attn_q.weight", 32),
                       floats_of("blk.0.attn_k.bias", {8}, {0, 1, 2, 3, 4, 5, 6, 7})});
  const ops::Weight q =
      weights->linear("model.layers.0.self_attn.q_proj", 32, 32, false, LinearPart::kDecoder);
  EXPECT_EQ(q.encoding().element, ops::Element::kInt8);
  at::Tensor first = q.unpacked().slice(1, 0, 1).flatten();
  const std::vector<float> head{0, 2, 4, 6, 1, 3, 5, 7};
  std::vector<float> expected;
  for (int64_t h = 0; h < 4; ++h)
    for (const float row : head) expected.push_back(static_cast<float>(h * kHead) + row);
  EXPECT_TRUE(at::equal(first, at::tensor(expected)));
  const at::Tensor bias = weights->get("model.layers.0.self_attn.k_proj.bias", {8});
  EXPECT_TRUE(at::equal(bias, at::tensor(head)));
  ASSERT_TRUE(weights->quantised());
  EXPECT_EQ(weights->quantised()->encoding, "Q8_0");
  EXPECT_EQ(weights->quantised()->integers, 1);
  EXPECT_EQ(weights->parameters(), 2 * 32 + 32 * 32 + 8);
  EXPECT_EQ(weights->stored_dtype(), at::kBFloat16);
}

TEST_F(GgufWeightsTest, PartsOfTensorsAreThoseOfTheWhole) {
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  auto weights = open({kEmbedding, integer_rows("blk.0.attn_q.weight", 32)});
  const at::Tensor whole = weights->view(name, {32, 32}).flatten();
  ASSERT_TRUE(weights->unmap().ok());
  for (const auto& [first, count] :
       {std::pair<size_t, size_t>{0, 1}, {31, 40}, {300, 724}, {255, 2}}) {
    const auto values = weights->stored_values(name, first, count);
    ASSERT_TRUE(values.ok());
    const auto begin = static_cast<int64_t>(first), size = static_cast<int64_t>(count);
    EXPECT_TRUE(at::equal(*values, whole.slice(0, begin, begin + size))) << first;
  }
  ops::Weight again(at::zeros({32, 32}), at::kFloat, at::kCPU);
  weights->refill("model.layers.0.self_attn.q_proj", again, LinearSlice::whole(32, 32));
  EXPECT_TRUE(at::equal(again.unpacked().flatten(), whole));
}

TEST_F(GgufWeightsTest, NormsOfGemmaAreLessByOne) {
  auto weights =
      open({kEmbedding, floats_of("blk.0.attn_norm.weight", {2}, {1.5f, 0.25f}),
            floats_of("blk.0.ffn_norm.weight", {1}, {2}), integer_rows("blk.0.attn_q.weight", 8)},
           "gemma3", {gguf_u32("gemma3.attention.sliding_window", 16)});
  EXPECT_TRUE(at::equal(weights->get("model.layers.0.input_layernorm.weight", {2}),
                        at::tensor({0.5f, -0.75f})));
  EXPECT_TRUE(weights->has("model.layers.0.pre_feedforward_layernorm.weight"));
  // Its rows are in order.
  const ops::Weight q = weights->linear("model.layers.0.self_attn.q_proj", 8, 32, false);
  EXPECT_EQ(q.unpacked()[1][0].item<float>(), 1);
}

TEST_F(GgufWeightsTest, NamesTheTensorThatIsWrong) {
  auto weights = open({kEmbedding, integer_rows("blk.0.ffn_up.weight", 4, 0x7C00 /* infinity */),
                       integer_rows("blk.0.ffn_down.weight", 4)});
  const auto refusal = [&](const std::string& name, int64_t out) {
    try {
      (void)weights->linear("model.layers.0.mlp." + name, out, 32, false);
    } catch (const LoadError& e) {
      return e.error().message;
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refusal("up_proj", 4),
              HasSubstr("tensor blk.0.ffn_up.weight has scales that are not finite"));
  EXPECT_THAT(refusal("down_proj", 5), HasSubstr("tensor blk.0.ffn_down.weight has shape [4, 32], "
                                                 "but the configuration requires [5, 32]"));
  EXPECT_THAT(refusal("gate_proj", 4),
              HasSubstr("has no tensor model.layers.0.mlp.gate_proj.weight"));
}

std::string config_refusal(std::vector<std::string> more, const std::string& architecture = "llama",
                           std::vector<GgufRawTensor> tensors = {kEmbedding}) {
  const auto file = Gguf::from_bytes(gguf_text(settings(architecture, more), tensors), "x.gguf");
  const auto config = gguf_config(*file.value());
  return config.ok() ? "accepted" : config.error().message;
}

TEST(GgufConfigTest, RefusesByKey) {
  EXPECT_EQ(config_refusal({}), "accepted");
  EXPECT_THAT(config_refusal({}, "falcon"), HasSubstr("is \"falcon\", which is not supported"));
  EXPECT_THAT(config_refusal({}, "llama", {}), HasSubstr("has no tensor token_embd.weight"));
  EXPECT_THAT(config_refusal({gguf_u32("llama.vocab_size", 3)}), HasSubstr("number of rows"));
  EXPECT_THAT(config_refusal({gguf_u32("llama.rope.dimension_count", 4)}),
              HasSubstr("must be the size of a head, 8"));
  EXPECT_THAT(config_refusal({gguf_u32("llama.attention.value_length", 4)}),
              HasSubstr("must be attention.key_length"));
  EXPECT_THAT(config_refusal({gguf_u32("llama.attention.sliding_window", 4)}),
              HasSubstr("\"llama.attention.sliding_window\" is not supported"));
  EXPECT_THAT(config_refusal({gguf_u32("llama.logit_scale", 4)}),
              HasSubstr("\"llama.logit_scale\" is not supported"));
  EXPECT_THAT(config_refusal({gguf_u32("llama.expert_count", 4)}),
              HasSubstr("is not supported with this value"));
  EXPECT_EQ(config_refusal({gguf_u32("llama.expert_count", 0)}), "accepted");
  EXPECT_THAT(config_refusal({gguf_string("llama.rope.scaling.type", "longrope")}),
              HasSubstr("only linear and yarn"));
  EXPECT_THAT(config_refusal({gguf_list<int32_t>("llama.attention.head_count_kv", 5, {2, 4})}),
              HasSubstr("must be one integer for all layers"));
  EXPECT_EQ(config_refusal({gguf_list<int32_t>("llama.attention.head_count_kv", 5, {2, 2})}),
            "accepted");
  EXPECT_THAT(
      config_refusal({}, "llama", {kEmbedding, floats_of("rope_freqs.weight", {4}, {1, 1, 0, 1})}),
      HasSubstr("rope_freqs.weight has values that are not above 0"));
  EXPECT_THAT(
      config_refusal({}, "llama", {kEmbedding, floats_of("rope_freqs.weight", {3}, {1, 1, 1})}),
      HasSubstr("must have 4 values of F32"));
  EXPECT_THAT(config_refusal({}, "gemma3"), HasSubstr("sliding_window\" is missing"));
}

TEST(GgufConfigTest, FactorsOfFrequenciesAreThoseOfLongRope) {
  const auto file = Gguf::from_bytes(
      gguf_text(settings("llama"), {kEmbedding, floats_of("rope_freqs.weight", {4}, {1, 2, 4, 8})}),
      "x.gguf");
  const Json scaling = gguf_config(*file.value()).value()["rope_scaling"];
  EXPECT_EQ(scaling["rope_type"], "longrope");
  EXPECT_EQ(scaling["short_factor"], (Json{1, 2, 4, 8}));
  EXPECT_EQ(scaling["long_factor"], scaling["short_factor"]);
  EXPECT_EQ(scaling["original_max_position_embeddings"], 128);
}

}  // namespace
}  // namespace valora::models
