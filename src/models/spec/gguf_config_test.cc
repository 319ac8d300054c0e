#include "models/spec/gguf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/spec/testing/gguf_parts.h"

namespace valora::models {
namespace {

using ::testing::HasSubstr;
using namespace models::testing;
using valora::testing::gguf_list;
using valora::testing::gguf_string;
using valora::testing::gguf_text;
using valora::testing::gguf_u32;
using valora::testing::GgufRawTensor;

const GgufRawTensor kEmbedding = integer_rows("token_embd.weight", 2);

std::string config_refusal(std::vector<std::string> more, const std::string& architecture = "llama",
                           std::vector<GgufRawTensor> tensors = {kEmbedding}) {
  const auto file =
      Gguf::from_bytes(gguf_text(gguf_settings(architecture, more), tensors), "x.gguf");
  const auto config = gguf_config(*file.value());
  return config.ok() ? "accepted" : config.error().message;
}

TEST(GgufConfigTest, RefusalNamesKey) {
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

TEST(GgufConfigTest, FrequencyFactorsBecomeLongRope) {
  const auto file =
      Gguf::from_bytes(gguf_text(gguf_settings("llama"),
                                 {kEmbedding, floats_of("rope_freqs.weight", {4}, {1, 2, 4, 8})}),
                       "x.gguf");
  const Json scaling = gguf_config(*file.value()).value()["rope_scaling"];
  EXPECT_EQ(scaling["rope_type"], "longrope");
  EXPECT_EQ(scaling["short_factor"], (Json{1, 2, 4, 8}));
  EXPECT_EQ(scaling["long_factor"], scaling["short_factor"]);
  EXPECT_EQ(scaling["original_max_position_embeddings"], 128);
}

}  // namespace
}  // namespace valora::models
