// tests/parity/test_gguf_tokenizer.py compares encoding with `tokenizers`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/gguf_text.h"
#include "text/gguf/tokenizer.h"

namespace valora::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using valora::testing::gguf_flag;
using valora::testing::gguf_list;
using valora::testing::gguf_string;
using valora::testing::gguf_text;
using valora::testing::gguf_u32;

std::shared_ptr<const Gguf> gguf_of(std::vector<std::string> entries) {
  return Gguf::from_bytes(gguf_text(entries), "x.gguf").value();
}

// "<s>" and "<|im_end|>" are control tokens, "<t>" is user-defined.
std::vector<std::string> small(std::vector<std::string> more) {
  std::vector<std::string> entries{
      gguf_list<std::string>("tokenizer.ggml.tokens", 8,
                             {"<s>", "a", "b", "ab", "<|im_end|>", "<t>"}),
      gguf_list<int32_t>("tokenizer.ggml.token_type", 5, {3, 1, 1, 1, 3, 4})};
  entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

std::string tokenizer_refusal(std::vector<std::string> entries) {
  const auto json = gguf_tokenizer(gguf_of(std::move(entries))->metadata());
  return json.ok() ? "accepted" : json.error().message;
}

TEST(GgufTokenizerTest, MergesAreOrderedByScoreThenLength) {
  const Json merges = merges_by_score({{"a", 0},
                                       {"b", 0},
                                       {"é", -1},
                                       {"ab", -3},
                                       {"abé", -2},
                                       {"bé", -2},
                                       {"aé", 5, /*merges=*/false}});
  EXPECT_EQ(merges, Json::parse(R"([["ab","é"],["a","bé"],["b","é"],["a","b"]])"));
}

TEST(GgufTokenizerTest, ReadsNamedTokensAndTheTemplate) {
  const auto file = gguf_of(
      small({gguf_string("tokenizer.ggml.model", "gpt2"),
             gguf_u32("tokenizer.ggml.bos_token_id", 0), gguf_u32("tokenizer.ggml.eos_token_id", 1),
             gguf_u32("tokenizer.ggml.padding_token_id", UINT32_MAX),
             gguf_string("tokenizer.chat_template", "{{ x }}")}));
  const GgufMetadata& metadata = file->metadata();
  EXPECT_EQ(*gguf_special_tokens(metadata), (Json{{"bos_token", "<s>"}, {"eos_token", "a"}}));
  EXPECT_THAT(*gguf_end_tokens(metadata), ElementsAre(1, 4));
  EXPECT_EQ(**gguf_chat_template(metadata), "{{ x }}");
  EXPECT_EQ(*gguf_chat_template(gguf_of({})->metadata()), std::nullopt);
}

TEST(GgufTokenizerTest, RefusesInconsistentMetadata) {
  const std::string gpt2 = gguf_string("tokenizer.ggml.model", "gpt2"),
                    llama = gguf_string("tokenizer.ggml.model", "llama"),
                    pre = gguf_string("tokenizer.ggml.pre", "gpt-2");
  EXPECT_EQ(tokenizer_refusal(small({gpt2, pre})), "accepted");
  EXPECT_EQ(tokenizer_refusal(small({})), "x.gguf: \"tokenizer.ggml.model\" is missing");
  EXPECT_EQ(tokenizer_refusal({gpt2, pre}), "x.gguf: \"tokenizer.ggml.tokens\" is missing");
  EXPECT_THAT(tokenizer_refusal(small({gpt2})), HasSubstr("does not say how texts are split"));
  EXPECT_THAT(tokenizer_refusal(small({llama})),
              HasSubstr("\"tokenizer.ggml.scores\" must have a number for each token"));
  const auto scores = gguf_list<float>("tokenizer.ggml.scores", 6, {0, 0, 0, 0, 0, 0});
  const std::string bos = gguf_u32("tokenizer.ggml.bos_token_id", 0);
  EXPECT_EQ(tokenizer_refusal(small({llama, scores, bos})), "accepted");
  EXPECT_THAT(
      tokenizer_refusal(
          small({llama, scores, bos, gguf_flag("tokenizer.ggml.remove_extra_whitespaces", true)})),
      HasSubstr("\"tokenizer.ggml.remove_extra_whitespaces\" is not supported"));
  EXPECT_THAT(tokenizer_refusal(
                  {gpt2, pre, gguf_list<std::string>("tokenizer.ggml.tokens", 8, {"a", "a"})}),
              HasSubstr("has the tokens 0 and 1 with one text"));
  EXPECT_THAT(
      tokenizer_refusal({gpt2, pre, gguf_list<std::string>("tokenizer.ggml.tokens", 8, {"\xff"})}),
      HasSubstr("token 0, which is not UTF-8"));
  EXPECT_THAT(
      tokenizer_refusal({gpt2, pre, gguf_list<std::string>("tokenizer.ggml.tokens", 8, {"a"}),
                         gguf_list<int32_t>("tokenizer.ggml.token_type", 5, {7})}),
      HasSubstr("token 0 of an unknown type"));
  EXPECT_THAT(tokenizer_refusal(
                  small({gpt2, pre, gguf_list<std::string>("tokenizer.ggml.merges", 8, {"ab"})})),
              HasSubstr("must be pairs of tokens"));
}

}  // namespace
}  // namespace valora::text
