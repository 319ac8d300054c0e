#include "serving/output/thought_splitter.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace valora::serving {
namespace {

using text::kThinkTags;
using text::ThoughtPlace;

// "thought|answer" of a text that is cut before these positions, which rise.
std::string split(const std::string& text, ThoughtPlace start, const std::vector<size_t>& cuts = {},
                  const text::ThoughtMarks& marks = kThinkTags) {
  ThoughtSplitter splitter(marks, start);
  ThoughtSplitter::Parts all;
  size_t from = 0;
  const auto add = [&](const ThoughtSplitter::Parts& parts) {
    EXPECT_TRUE(parts.thought.empty() || all.answer.empty()) << "a thought after the answer";
    all.thought += parts.thought;
    all.answer += parts.answer;
  };
  for (const size_t cut : cuts) {
    add(splitter.feed(std::string_view(text).substr(from, cut - from)));
    from = cut;
  }
  add(splitter.feed(std::string_view(text).substr(from)));
  add(splitter.finish());
  return all.thought + "|" + all.answer;
}

constexpr auto kUndecided = ThoughtPlace::kUndecided, kThought = ThoughtPlace::kThought,
               kAnswer = ThoughtPlace::kAnswer;

TEST(ThoughtSplitter, SeparatesTheThought) {
  EXPECT_EQ(split("<think>\nhm\n</think>\n\nyes", kUndecided), "hm|yes");
  EXPECT_EQ(split(" \n<think>hm</think>yes", kUndecided), "hm|yes");
  EXPECT_EQ(split("hm\n\nso\n</think>\n\nyes\n", kThought), "hm\n\nso|yes\n");
  EXPECT_EQ(split("<think>\nhm</think>yes", kThought), "hm|yes") << "opened twice";
  EXPECT_EQ(split("</think>yes", kThought), "|yes");
  EXPECT_EQ(split("[THINK]hm[/THINK]yes", kUndecided, {}, text::kThinkBrackets), "hm|yes");
}

TEST(ThoughtSplitter, LeavesAnswersWithoutThoughtUnchanged) {
  for (const std::string text :
       {"\n yes", "  ", "<thin", "<b>x</think>y", "a <think>b</think>", ""})
    EXPECT_EQ(split(text, kUndecided), "|" + text);
  EXPECT_EQ(split("\n<think>a</think>", kAnswer), "|\n<think>a</think>");
}

TEST(ThoughtSplitter, ThoughtThatIsNotClosedIsAThought) {
  EXPECT_EQ(split("<think>\nhm\n</thi", kUndecided), "hm\n</thi|");
  EXPECT_EQ(split("hm", kThought), "hm|");
  EXPECT_EQ(split("\n<th", kThought), "<th|");
}

TEST(ThoughtSplitter, OnlyTheFirstThoughtIsOne) {
  EXPECT_EQ(split("<think>a</think>b<think>c</think>d", kUndecided), "a|b<think>c</think>d");
  EXPECT_EQ(split("a<think>b</think>c", kThought), "a<think>b|c");
}

TEST(ThoughtSplitter, CutsDoNotChangeTheParts) {
  std::mt19937_64 random(1);
  const std::vector<std::string> pieces = {"<think>", "</think>", "<", "</", "think>", "</thin",
                                           "\n",      "\n\n",     " ", "a",  "bc"};
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (size_t n = random() % 9; n > 0; --n) text += pieces[random() % pieces.size()];
    std::vector<size_t> each;
    for (size_t at = 1; at < text.size(); ++at) each.push_back(at);
    std::vector<size_t> some;
    for (const size_t at : each)
      if (random() % 3 == 0) some.push_back(at);
    for (const ThoughtPlace start : {kUndecided, kThought, kAnswer}) {
      const std::string whole = split(text, start);
      EXPECT_EQ(split(text, start, each), whole) << text;
      EXPECT_EQ(split(text, start, some), whole) << text;
    }
  }
}

TEST(ThoughtSplitter, KnowsItsPlace) {
  ThoughtSplitter splitter(kThinkTags, kUndecided);
  EXPECT_EQ(splitter.place(), kUndecided);
  splitter.feed("<think>a</th");
  EXPECT_EQ(splitter.place(), kThought);
  EXPECT_EQ(splitter.end_begun(), 4);
  splitter.feed("x");
  EXPECT_EQ(splitter.end_begun(), 0);
  splitter.feed("</think");
  EXPECT_EQ(splitter.end_begun(), 7);
  splitter.feed(">");
  EXPECT_EQ(splitter.place(), kAnswer);
  EXPECT_EQ(splitter.end_begun(), 0);
}

TEST(ThoughtSplitter, SendsTextAtOnceWhereNothingIsUndecided) {
  ThoughtSplitter splitter(kThinkTags, kThought);
  EXPECT_EQ(splitter.feed("hm").thought, "hm");
  EXPECT_EQ(splitter.feed(" a<b\n").thought, " a<b");
  EXPECT_EQ(splitter.feed("c</thi").thought, "\nc");
  EXPECT_EQ(splitter.feed("nk>\n").answer, "");
  EXPECT_EQ(splitter.feed("\nyes").answer, "yes");
  EXPECT_EQ(splitter.feed("\n").answer, "\n");
}

}  // namespace
}  // namespace valora::serving
