#include "serving/prompts/media_text.h"

#include <gtest/gtest.h>

#include "text/testing/tiny_tokenizer.h"

namespace valora::serving {
namespace {

constexpr int32_t kImageToken = 260, kBorderToken = 261;

// A tokenizer with a token for two line breaks.
Json image_tokenizer() {
  Json json = text::tiny_tokenizer_json();
  json["model"]["vocab"]["\u010a\u010a"] = 259;
  json["model"]["merges"].push_back("\u010a \u010a");
  json["added_tokens"] = Json::array({text::added_token_json(kImageToken, "<image>", true),
                                      text::added_token_json(kBorderToken, "<border>", true)});
  return json;
}

std::shared_ptr<const text::Tokenizer> tokenizer_from(const Json& json) {
  return text::Tokenizer::from_json(json, "tiny").value();
}

std::string bordered(const media::VisualInput& image) {
  std::string text;
  for (int tile = 0; tile < image.tile_rows; ++tile) text += "<border>t<image>\n";
  return text + (image.tile_rows > 0 ? "\n" : "") + "<border><image><border>";
}

models::Family bordered_family() {
  models::Family family{};
  family.image_placeholder = "<image>";
  family.media_text = bordered;
  return family;
}

TEST(MediaText, PlaceholdersExpandToRows) {
  const auto tokenizer = tokenizer_from(image_tokenizer());
  auto input = std::make_shared<media::VisualInput>();
  input->tile_rows = 2, input->tile_columns = 1, input->grid_t = 3, input->tokens = 6;
  std::vector<int32_t> tokens{'a'};
  std::vector<models::VisualSpan> visual;
  ASSERT_TRUE(
      append_image({kImageToken, bordered(*input), input}, *tokenizer, tokens, visual).ok());
  EXPECT_EQ(tokens, (std::vector<int32_t>{'a', kBorderToken, 't', kImageToken, kImageToken, '\n',
                                          kBorderToken, 't', kImageToken, kImageToken, 259,
                                          kBorderToken, kImageToken, kImageToken, kBorderToken}));
  ASSERT_EQ(visual.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(visual[i].rows, 2);
    EXPECT_EQ(visual[i].first_row, 2 * static_cast<int>(i));
    EXPECT_EQ(visual[i].input, input);
    EXPECT_NE(tokens[static_cast<size_t>(visual[i].token_begin) - 1], kImageToken);
    EXPECT_EQ(tokens[static_cast<size_t>(visual[i].token_begin) + 1], kImageToken);
  }
  input->grid_t = 2;
  EXPECT_FALSE(
      append_image({kImageToken, bordered(*input), input}, *tokenizer, tokens, visual).ok());
}

TEST(MediaText, TokenRowsAreSeparated) {
  const auto tokenizer = tokenizer_from(image_tokenizer());
  auto input = std::make_shared<media::VisualInput>();
  input->tokens = 6, input->token_rows = 3;
  std::vector<int32_t> tokens;
  std::vector<models::VisualSpan> visual;
  std::string text;
  for (int row = 0; row < 3; ++row) text += "<image><border>";
  ASSERT_TRUE(append_image({kImageToken, text, input}, *tokenizer, tokens, visual).ok());
  EXPECT_EQ(tokens.size(), 9u);
  ASSERT_EQ(visual.size(), 3u);
  EXPECT_EQ(visual[2].token_begin, 6);
  EXPECT_EQ(visual[2].first_row, 4);
  input->token_rows = 2;
  EXPECT_FALSE(append_image({kImageToken, text, input}, *tokenizer, tokens, visual).ok());
}

TEST(MediaText, VideoTextIsTokenizedWithNeighbours) {
  const auto tokenizer = tokenizer_from(image_tokenizer());
  auto input = std::make_shared<media::VisualInput>();
  input->kind = media::MediaKind::kVideo, input->grid_t = 2, input->tokens = 2;
  const std::vector<int32_t> placeholders{kImageToken};
  const text::ContentMarks marks(*tokenizer, placeholders);
  std::vector<int32_t> tokens{kBorderToken, 'x', 'a'};
  const std::vector<int32_t> behind{'b', '<', 'b', 'o', 'r', 'd', 'e', 'r', '>'};
  std::vector<models::VisualSpan> visual;
  ASSERT_TRUE(append_video_text({kImageToken, "b<image><border><image>a", input}, behind,
                                *tokenizer, marks, tokens, visual)
                  .ok());
  EXPECT_EQ(tokens,
            (std::vector<int32_t>{kBorderToken, 'x', 256, kImageToken, kBorderToken, kImageToken,
                                  256, '<', 'b', 'o', 'r', 'd', 'e', 'r', '>'}))
      << "\"ab\" is a token; a spelled token stays text";
  ASSERT_EQ(visual.size(), 2u);
  EXPECT_EQ(visual[1].token_begin, 5);
}

TEST(MediaText, RefusesMediaTextThatAffectsNeighbours) {
  const models::Family family = bordered_family();
  const auto refusal = [&](const Json& json) {
    const Status status = check_media_text(family, *tokenizer_from(json), kImageToken);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_EQ(refusal(image_tokenizer()), "");
  for (const char* side : {"lstrip", "rstrip"}) {
    Json json = image_tokenizer();
    json["added_tokens"][1][side] = true;
    EXPECT_NE(refusal(json).find("around <border>"), std::string::npos) << side;
  }
  Json json = image_tokenizer();
  json["added_tokens"].erase(1);
  EXPECT_NE(refusal(json).find("begin and end with an added token"), std::string::npos);
}

}  // namespace
}  // namespace valora::serving
