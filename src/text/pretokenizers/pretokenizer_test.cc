#include "text/pretokenizers/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> pieces_of(const char* json, const std::string& text) {
  const auto pretokenizer = make_pretokenizer(Json::parse(json), "pre_tokenizer");
  if (!pretokenizer.ok()) return {pretokenizer.error().message};
  Pieces pieces{text, {{0, text.size()}}};
  (*pretokenizer)->apply(pieces);
  std::vector<std::string> result;
  for (size_t i = 0; i < pieces.spans.size(); ++i) result.emplace_back(pieces[i]);
  return result;
}

std::vector<std::string> split(const char* behavior, bool invert,
                               const Json& pattern = {{"String", "-"}}) {
  const Json json = {
      {"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}, {"invert", invert}};
  return pieces_of(json.dump().c_str(), "-a--b");
}

// Expected pieces from tokenizers 0.22 (pre_tokenizers.Split("-", …).pre_tokenize_str("-a--b")).
TEST(Split, FollowsBehavior) {
  EXPECT_THAT(split("Removed", false), ElementsAre("a", "b"));
  EXPECT_THAT(split("Isolated", false), ElementsAre("-", "a", "-", "-", "b"));
  EXPECT_THAT(split("MergedWithPrevious", false), ElementsAre("-", "a-", "-", "b"));
  EXPECT_THAT(split("MergedWithNext", false), ElementsAre("-a", "-", "-b"));
  EXPECT_THAT(split("Contiguous", false), ElementsAre("-", "a", "--", "b"));
}

TEST(Split, InvertSwapsMatchesAndGaps) {
  EXPECT_THAT(split("Removed", true), ElementsAre("-", "-", "-"));
  EXPECT_THAT(split("MergedWithPrevious", true), ElementsAre("-a", "-", "-b"));
  EXPECT_THAT(split("MergedWithNext", true), ElementsAre("-", "a-", "-", "b"));
}

TEST(Split, RefusesWrongSettings) {
  EXPECT_THAT(split("Sometimes", false)[0], HasSubstr("unknown behavior \"Sometimes\""));
  EXPECT_THAT(split("Removed", false, {{"Glob", "*"}})[0],
              HasSubstr("unknown kind of pattern \"Glob\""));
  EXPECT_THAT(split("Removed", false, {{"String", ""}})[0], HasSubstr("the pattern is empty"));
  EXPECT_THAT(split("Removed", false, {{"Regex", "\\w"}})[0],
              HasSubstr("\"\\w\" is not supported"));
}

TEST(Digits, SplitIndividuallyOrInRuns) {
  EXPECT_THAT(pieces_of(R"({"type": "Digits", "individual_digits": true})", "a12½b"),
              ElementsAre("a", "1", "2", "½", "b"));
  EXPECT_THAT(pieces_of(R"({"type": "Digits", "individual_digits": false})", "a12½b"),
              ElementsAre("a", "12½", "b"));
}

TEST(ByteLevel, MapsBytesAndPrefixesASpace) {
  EXPECT_THAT(
      pieces_of(R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true})", "é a"),
      ElementsAre("ĠÃ©", "Ġa"));
  constexpr const char* kWhole =
      R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false})";
  EXPECT_THAT(pieces_of(kWhole, "é a\n"), ElementsAre("Ã©ĠaĊ"));
}

TEST(Metaspace, ReplacesSpacesAndSplitsBeforeThem) {
  EXPECT_THAT(pieces_of(R"({"type": "Metaspace", "replacement": "▁"})", "a  b▁c "),
              ElementsAre("▁a", "▁", "▁b", "▁c", "▁"));
  EXPECT_THAT(pieces_of(R"({"type": "Metaspace", "replacement": "▁"})", " a"), ElementsAre("▁a"));
  EXPECT_THAT(pieces_of(R"({"type": "Metaspace", "replacement": "▁", "split": false})", "a b"),
              ElementsAre("▁a▁b"));
  EXPECT_THAT(
      pieces_of(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"})", "a b"),
      ElementsAre("a", "_b"));
}

TEST(Metaspace, PrependsToTheFirstPieceOfTheSequenceOnly) {
  const auto metaspace = make_pretokenizer(
      Json::parse(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"})"),
      "pre_tokenizer");
  const auto text_of = [&](size_t head) {
    Pieces pieces{"ab", {{0, 1}, {1, 2}}, head};
    metaspace.value()->apply(pieces);
    return pieces.text;
  };
  EXPECT_EQ(text_of(1), "▁ab");
  EXPECT_EQ(text_of(2), "▁a▁b");
  EXPECT_EQ(text_of(0), "ab");
}

TEST(Metaspace, RefusesWrongSettings) {
  const auto refusal = [](const char* json) { return pieces_of(json, "a")[0]; };
  EXPECT_THAT(refusal(R"({"type": "Metaspace", "replacement": "ab"})"),
              HasSubstr("must be one character"));
  EXPECT_THAT(refusal(R"({"type": "Metaspace", "replacement": ""})"),
              HasSubstr("must be one character"));
  EXPECT_THAT(refusal(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"})"),
              HasSubstr("\"last\""));
  EXPECT_THAT(refusal(R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false})"),
              HasSubstr("does not match"));
}

TEST(Sequence, RefusesPartsThatMultiplyTheText) {
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}};
  const Json json = {{"type", "Sequence"}, {"pretokenizers", Json(5, byte_level)}};
  EXPECT_THAT(pieces_of(json.dump().c_str(), "a")[0], HasSubstr("256 times longer"));
}

TEST(Sequence, AppliesItsPartsInOrder) {
  constexpr const char* kJson = R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Removed", "invert": false},
      {"type": "Digits", "individual_digits": false}]})";
  EXPECT_THAT(pieces_of(kJson, "a1 22  b"), ElementsAre("a", "1", "22", "b"));
  EXPECT_THAT(pieces_of(kJson, "  "), IsEmpty());
  EXPECT_THAT(pieces_of(R"({"type": "Sequence", "pretokenizers": [null]})", "a")[0],
              HasSubstr("pretokenizers[0]"));
}

}  // namespace
}  // namespace valora::text
