#include "text/chat/thought_marks.h"

#include <gtest/gtest.h>

namespace valora::text {
namespace {

TEST(ThoughtMarks, AreFoundInTemplates) {
  EXPECT_EQ(find_thought_marks("{{ '<think>' }}")->begin, "<think>");
  EXPECT_EQ(find_thought_marks("{{ m.content.split('</think>')[-1] }}")->end, "</think>");
  EXPECT_EQ(find_thought_marks("{% if enable_thinking %}")->end, "</think>");
  EXPECT_EQ(find_thought_marks("[THINK]")->end, "[/THINK]");
  EXPECT_EQ(find_thought_marks("{{ messages[0].content }} thinks"), nullptr);
}

TEST(ThoughtMarks, PromptsOpenAndCloseThoughts) {
  const auto after = [](std::string_view text) { return place_after(text, kThinkTags); };
  EXPECT_EQ(after("assistant\n<think>\n"), ThoughtPlace::kThought);
  EXPECT_EQ(after("assistant\n<think>"), ThoughtPlace::kThought);
  EXPECT_EQ(after("assistant\n<think>\n\n</think>\n\n"), ThoughtPlace::kAnswer);
  EXPECT_EQ(after("user\nwhat is <think>?\nassistant\n"), ThoughtPlace::kUndecided);
  EXPECT_EQ(after(""), ThoughtPlace::kUndecided);
  EXPECT_EQ(place_after("[THINK]", kThinkTags), ThoughtPlace::kUndecided);
  EXPECT_EQ(place_after("[THINK]", kThinkBrackets), ThoughtPlace::kThought);
}

TEST(ThoughtMarks, ContinuedAnswersAreWithinTheirThoughtUntilItIsClosed) {
  const auto within = [](std::string_view text) { return place_within(text, kThinkTags); };
  EXPECT_EQ(within("<think>\nLet me"), ThoughtPlace::kThought);
  EXPECT_EQ(within("<think>\nLet me\n</think>\n\nIt"), ThoughtPlace::kAnswer);
  EXPECT_EQ(within("It is a"), ThoughtPlace::kAnswer);
}

}  // namespace
}  // namespace valora::text
