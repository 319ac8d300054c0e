// GGUF files as checkpoints. tests/parity/test_gguf.py compares answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"
#include "models/spec/load_error.h"
#include "models/spec/testing/gguf_parts.h"
#include "models/weights/weights.h"

namespace valora::models {
namespace {

using ::testing::HasSubstr;
using namespace models::testing;
using valora::testing::gguf_text;
using valora::testing::gguf_u32;
using valora::testing::GgufRawTensor;

constexpr int64_t kHead = 8;

class GgufWeightsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Weights> open(std::vector<GgufRawTensor> tensors,
                                const std::string& architecture = "llama",
                                std::vector<std::string> more = {}) {
    auto weights =
        Weights::open(dir_.write("m.gguf", gguf_text(gguf_settings(architecture, more), tensors)));
    EXPECT_TRUE(weights.ok()) << weights.error().message;
    return std::move(weights).value();
  }
  valora::testing::TempDir dir_;
};

const GgufRawTensor kEmbedding = integer_rows("token_embd.weight", 2);

TEST_F(GgufWeightsTest, QueryRowsAreReorderedForTransformers) {
  auto weights = open({kEmbedding, integer_rows("blk.0.attn_q.weight", 32),
                       floats_of("blk.0.attn_k.bias", {8}, {0, 1, 2, 3, 4, 5, 6, 7})});
  const ops::Weight q =
      weights->linear("model.layers.0.self_attn.q_proj", 32, 32, false, LinearPart::kDecoder);
  EXPECT_EQ(q.encoding().bits, 8);
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

TEST_F(GgufWeightsTest, PartialReadsEqualWholeTensor) {
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

TEST_F(GgufWeightsTest, GemmaNormsAreReducedByOne) {
  auto weights =
      open({kEmbedding, floats_of("blk.0.attn_norm.weight", {2}, {1.5f, 0.25f}),
            floats_of("blk.0.ffn_norm.weight", {1}, {2}), integer_rows("blk.0.attn_q.weight", 8)},
           "gemma3", {gguf_u32("gemma3.attention.sliding_window", 16)});
  EXPECT_TRUE(at::equal(weights->get("model.layers.0.input_layernorm.weight", {2}),
                        at::tensor({0.5f, -0.75f})));
  EXPECT_TRUE(weights->has("model.layers.0.pre_feedforward_layernorm.weight"));
  // The rows of q_proj are already in order.
  const ops::Weight q = weights->linear("model.layers.0.self_attn.q_proj", 8, 32, false);
  EXPECT_EQ(q.unpacked()[1][0].item<float>(), 1);
}

TEST_F(GgufWeightsTest, ErrorNamesBadTensor) {
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

}  // namespace
}  // namespace valora::models
