#include "text/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/models/bpe.h"
#include "text/normalizers/unicode_form.h"

namespace valora::text {
namespace {

using ::testing::ElementsAre;

// The segments' texts, with added tokens in brackets.
std::vector<std::string> written(const std::vector<Segment>& segments) {
  std::vector<std::string> out;
  for (const Segment& s : segments)
    out.push_back(s.id ? "[" + std::string(s.text) + "]" : std::string(s.text));
  return out;
}

AddedTokens read(const std::vector<AddedToken>& tokens) {
  Json json = Json::array();
  for (const AddedToken& t : tokens)
    json.push_back({{"id", json.size()},
                    {"content", t.content},
                    {"single_word", t.single_word},
                    {"lstrip", t.lstrip},
                    {"rstrip", t.rstrip},
                    {"normalized", t.normalized},
                    {"special", t.special}});
  const auto model = make_bpe({{"vocab", Json::object()}, {"merges", Json::array()}}, "model");
  const UnicodeNormalizer nfc(UnicodeForm::kNfc);
  auto added = AddedTokens::read(json, "added_tokens", **model, &nfc);
  EXPECT_TRUE(added.ok()) << added.error().message;
  return std::move(*added);
}

TEST(AddedTokens, FindsLeftmostThenLongest) {
  const auto added = read({{.content = "<a>"}, {.content = "<a><b>"}, {.content = "b"}});
  EXPECT_THAT(written(added.split_raw("x<a><b><a>y<")),
              ElementsAre("x", "[<a><b>]", "[<a>]", "y<"));
  EXPECT_THAT(written(added.split_raw("")), ElementsAre());
}

TEST(AddedTokens, StripFlagsTakeSurroundingSpaces) {
  const auto added = read({{.content = "<l>", .lstrip = true}, {.content = "<r>", .rstrip = true}});
  EXPECT_THAT(written(added.split_raw("a \t<l> b")), ElementsAre("a", "[ \t<l>]", " b"));
  EXPECT_THAT(written(added.split_raw("a <r>\u3000\nb")), ElementsAre("a ", "[<r>\u3000\n]", "b"));
  EXPECT_THAT(written(added.split_raw("<r> <l>")), ElementsAre("[<r> ]", "[<l>]"));
}

TEST(AddedTokens, SingleWordTokenMatchesWholeWords) {
  const auto added = read({{.content = "of", .single_word = true}});
  EXPECT_THAT(written(added.split_raw("of oft, éof of_ (of)")),
              ElementsAre("[of]", " oft, éof of_ (", "[of]", ")"));
}

TEST(AddedTokens, NormalizedTokensMatchNormalizedText) {
  const auto added = read({{.content = "\u212B", .normalized = true}, {.content = "e\u0301"}});
  EXPECT_THAT(written(added.split_raw("e\u0301\u212B")), ElementsAre("[e\u0301]", "\u212B"));
  EXPECT_THAT(written(added.split_normalized("Åé")), ElementsAre("[Å]", "é"));
}

TEST(AddedTokens, KnowsWhichAreSpecial) {
  const auto added = read({{.content = "<a>", .special = true}, {.content = "<b>"}});
  EXPECT_TRUE(added.is_special("<a>"));
  EXPECT_FALSE(added.is_special("<b>"));
  EXPECT_FALSE(added.is_special("<c>"));
  EXPECT_EQ(added.token_to_id("<b>"), 1);
  EXPECT_EQ(added.max_id(), 1);
}

TEST(AddedTokens, StrippingSpaceTokensScanRunOnce) {
  const auto added = read({{.content = " ", .rstrip = true}});
  EXPECT_EQ(added.split_raw(std::string(300'000, ' ')).size(), 300'000);
}

}  // namespace
}  // namespace valora::text
