#include "serving/sampling/thought_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/testing/tiny_tokenizer.h"

namespace valora::serving {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using text::ThoughtPlace;

constexpr int32_t kOver = 261, kMiddle = 262, kEndOfText = 263;  // ">a", "x</think>y", "k>"

std::shared_ptr<const text::Tokenizer> tokenizer_of_overruns() {
  Json json = text::tiny_tokenizer_json();
  json["added_tokens"].push_back(text::added_token_json(kOver, ">a", false));
  json["added_tokens"].push_back(text::added_token_json(kMiddle, "x</think>y", false));
  json["added_tokens"].push_back(text::added_token_json(kEndOfText, "k>", false));
  return text::Tokenizer::from_json(json, "marks").value();
}

class ThoughtProgressTest : public ::testing::Test {
 protected:
  ThoughtProgress progress(std::optional<int> budget,
                           ThoughtPlace start = ThoughtPlace::kThought) const {
    return {syntax_, tokenizer_, {.start = start, .budget = budget}};
  }
  static void write(ThoughtProgress& progress, std::string_view text) {
    for (const unsigned char byte : text) progress.accept(byte);
  }
  std::shared_ptr<const text::Tokenizer> tokenizer_ = tokenizer_of_overruns();
  ThoughtSyntax syntax_ =
      *find_thought_syntax(ReasoningParser::kQwen3,
                           *std::unique_ptr<text::ChatFormat>(text::make_chatml()), *tokenizer_);
};

TEST_F(ThoughtProgressTest, FollowsMarksOfSeveralTokens) {
  ThoughtProgress thought = progress({}, ThoughtPlace::kUndecided);
  EXPECT_TRUE(thought.undecided());
  write(thought, "<think>");
  EXPECT_TRUE(thought.open());
  write(thought, "hm</thin");
  EXPECT_TRUE(thought.open());
  write(thought, "k>");
  EXPECT_FALSE(thought.open() || thought.undecided());
}

TEST_F(ThoughtProgressTest, TokensThatRunOverTheMarkAreKnown) {
  ThoughtProgress thought = progress({});
  EXPECT_THAT(thought.overruns(), ElementsAre(kMiddle));
  write(thought, "</thin");
  EXPECT_THAT(thought.overruns(), ElementsAre(kMiddle)) << "k> completes it";
  write(thought, "k");
  EXPECT_THAT(thought.overruns(), Contains(kOver));
  write(thought, "x");
  EXPECT_THAT(thought.overruns(), ElementsAre(kMiddle));
}

TEST_F(ThoughtProgressTest, BudgetForcesTheWholeMark) {
  ThoughtProgress thought = progress(3);
  write(thought, "ab");
  EXPECT_EQ(thought.forced(), std::nullopt);
  write(thought, "<");  // a mark that is begun is written anew
  std::string written;
  while (const auto token = thought.forced()) {
    written += tokenizer_->token_bytes(*token);
    thought.accept(*token);
    ASSERT_LE(written.size(), 8);
  }
  EXPECT_EQ(written, "</think>");
  EXPECT_FALSE(thought.open());
}

TEST_F(ThoughtProgressTest, SpecialTokensAreNotTextUnlessWanted) {
  ThoughtProgress thought = progress({});
  write(thought, "</th");
  thought.accept(259);
  write(thought, "ink>");
  EXPECT_FALSE(thought.open());
}

}  // namespace
}  // namespace valora::serving
