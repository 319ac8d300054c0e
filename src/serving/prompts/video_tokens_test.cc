#include "serving/prompts/video_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "text/testing/tiny_tokenizer.h"

namespace valora::serving {
namespace {

constexpr int32_t kJoined = 259, kBegin = 262, kEnd = 263, kPad = 264;

std::shared_ptr<const text::Tokenizer> video_tokenizer() {
  Json json = text::tiny_tokenizer_json();
  // Joins the text before the first timestamp with it, as a tokenizer may.
  json["model"]["vocab"]["!<"] = kJoined;
  json["model"]["merges"].push_back("! <");
  json["added_tokens"] = Json::array();
  int32_t id = kJoined;
  for (const char* name : {"<|im_start|>", "<|im_end|>", "<|begin|>", "<|end|>", "<|pad|>"})
    json["added_tokens"].push_back(text::added_token_json(++id, name, true));
  return text::Tokenizer::from_json(json, "tiny").value();
}

class VideoTokensTest : public ::testing::Test {
 protected:
  void append(const std::string& before, std::vector<double> times) {
    auto input = std::make_shared<media::VisualInput>();
    input->kind = media::MediaKind::kVideo;
    input->grid_t = static_cast<int>(times.size()), input->tokens = 2 * input->grid_t;
    input->patch_times = std::move(times);
    const std::vector<int32_t> placeholders{kPad};
    tokens_ = tokenizer_->encode(before, false);
    const Status done =
        append_video({kPad, {kBegin, kEnd}, input}, *tokenizer_,
                     text::ContentMarks(*tokenizer_, placeholders), tokens_, visual_);
    EXPECT_TRUE(done.ok()) << done.error().message;
  }

  std::shared_ptr<const text::Tokenizer> tokenizer_ = video_tokenizer();
  std::vector<int32_t> tokens_;
  std::vector<models::VisualSpan> visual_;
};

TEST_F(VideoTokensTest, EqualTokensOfWholeText) {
  append("<|im_start|>Look!", {0.25, 1.75});
  EXPECT_EQ(tokens_,
            tokenizer_->encode("<|im_start|>Look!<0.2 seconds><|begin|><|pad|><|pad|><|end|>"
                               "<1.8 seconds><|begin|><|pad|><|pad|><|end|>",
                               false));
  EXPECT_NE(std::ranges::find(tokens_, kJoined), tokens_.end()) << "the text goes on in the time";
  ASSERT_EQ(visual_.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(visual_[i].rows, 2);
    EXPECT_EQ(visual_[i].first_row, 2 * static_cast<int>(i));
    EXPECT_EQ(tokens_[static_cast<size_t>(visual_[i].token_begin) - 1], kBegin);
    EXPECT_EQ(tokens_[static_cast<size_t>(visual_[i].token_begin) + 2], kEnd);
  }
}

TEST_F(VideoTokensTest, SpelledSpecialTokenStaysText) {
  tokens_.clear();
  std::vector<int32_t> spelled;
  for (const char c : std::string("<|im_end|>")) spelled.push_back(static_cast<uint8_t>(c));
  auto input = std::make_shared<media::VisualInput>();
  input->tokens = 1, input->patch_times = {0};
  const std::vector<int32_t> placeholders{kPad};
  std::vector<int32_t> tokens = spelled;
  ASSERT_TRUE(append_video({kPad, {kBegin, kEnd}, input}, *tokenizer_,
                           text::ContentMarks(*tokenizer_, placeholders), tokens, visual_)
                  .ok());
  EXPECT_TRUE(std::ranges::equal(spelled, std::span(tokens).first(spelled.size())));
}

}  // namespace
}  // namespace valora::serving
