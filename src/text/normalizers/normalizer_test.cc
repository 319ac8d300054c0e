#include "text/normalizers/normalizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::text {
namespace {

using ::testing::HasSubstr;

std::string normalized(const char* json, std::string_view text) {
  const auto normalizer = make_normalizer(Json::parse(json), "normalizer");
  return normalizer.ok() ? (*normalizer)->normalize(text) : normalizer.error().message;
}

size_t head_of(const char* json, std::string_view text, size_t head) {
  const auto normalizer = make_normalizer(Json::parse(json), "normalizer");
  NormalizedText result{std::string(text), head};
  normalizer.value()->apply(result);
  return result.head;
}

constexpr const char* kLlamaNormalizer = R"({"type": "Sequence", "normalizers": [
    {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})";

TEST(Normalizer, LlamaAddsPrefixAndReplacesSpaces) {
  EXPECT_EQ(normalized(kLlamaNormalizer, "a b"), "▁a▁b");
  EXPECT_EQ(normalized(kLlamaNormalizer, " a"), "▁▁a");
  EXPECT_EQ(normalized(kLlamaNormalizer, ""), "");
}

TEST(Normalizer, ReplacesMatches) {
  EXPECT_EQ(normalized(R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})",
                       "a   b c"),
            "a b c");
  EXPECT_EQ(normalized(R"({"type": "Replace", "pattern": {"Regex": "x*"}, "content": "-"})", ""),
            "");
  EXPECT_EQ(
      normalized(R"({"type": "Replace", "pattern": {"String": "."}, "content": "$1"})", "a.b"),
      "a$1b");
}

TEST(Normalizer, StripsWhiteSpace) {
  EXPECT_EQ(
      normalized(R"({"type": "Strip", "strip_left": true, "strip_right": true})", " \u3000a b\n "),
      "a b");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": true, "strip_right": false})", " a "),
            "a ");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": false, "strip_right": true})", " a "),
            " a");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": true, "strip_right": true})", " \n"), "");
}

TEST(Normalizer, LowercasesWithoutContext) {
  EXPECT_EQ(normalized(R"({"type": "Lowercase"})", "ÀΣ İǅẞ\u1C89"), "àσ i\u0307ǆß\u1C8A");
}

TEST(Normalizer, AppliesUnicodeForms) {
  EXPECT_EQ(normalized(R"({"type": "NFD"})", "é한"), "e\u0301\u1112\u1161\u11AB");
  EXPECT_EQ(normalized(R"({"type": "NFKD"})", "½ﬁ"), "1\u20442fi");
  EXPECT_EQ(normalized(R"({"type": "NFKC"})", "ﬁe\u0301①"), "fié1");
  EXPECT_EQ(normalized(R"({"type": "NFKC"})", "㋿"), "㋿");  // newer than the reference's data
}

TEST(Normalizer, TracksOutputOfFirstCharacter) {
  EXPECT_EQ(head_of(kLlamaNormalizer, "a b", 1), 4);
  EXPECT_EQ(head_of(kLlamaNormalizer, "a b", 0), 0);
  EXPECT_EQ(head_of(kLlamaNormalizer, "", 0), 0);
  EXPECT_EQ(head_of(R"({"type": "NFC"})", "e\u0301x", 1), 2);
  EXPECT_EQ(head_of(R"({"type": "NFKD"})", "½x", 2), 5);
  EXPECT_EQ(head_of(R"({"type": "Lowercase"})", "İx", 2), 3);
  EXPECT_EQ(head_of(R"({"type": "Strip", "strip_left": true, "strip_right": true})", " x", 1), 0);
  EXPECT_EQ(head_of(R"({"type": "Strip", "strip_left": true, "strip_right": true})", "x ", 1), 1);
  EXPECT_EQ(
      head_of(R"({"type": "Replace", "pattern": {"String": "ab"}, "content": "cde"})", "abx", 1),
      0);
  EXPECT_EQ(
      head_of(R"({"type": "Replace", "pattern": {"String": "a"}, "content": "cde"})", "aba", 1), 3);
}

TEST(Normalizer, RefusalNamesNormalizer) {
  EXPECT_THAT(normalized(R"({"type": "StripAccents"})", ""),
              HasSubstr("normalizer \"StripAccents\" is not supported"));
  EXPECT_THAT(normalized(R"({"type": "Sequence", "normalizers": [null]})", ""),
              HasSubstr("normalizers[0]"));
  EXPECT_THAT(normalized(R"({"type": "Prepend"})", ""), HasSubstr("\"prepend\" is missing"));
  EXPECT_THAT(normalized(R"({"type": "Strip", "strip_left": true})", ""),
              HasSubstr("\"strip_right\" is missing"));
  EXPECT_THAT(normalized(R"({"type": "Replace", "pattern": {"Regex": "^a"}, "content": ""})", ""),
              HasSubstr("anchor"));
  EXPECT_THAT(make_normalizer({{"type", "Prepend"}, {"prepend", std::string(2000, 'x')}}, "n")
                  .error()
                  .message,
              HasSubstr("longer than 1024"));
}

TEST(Normalizer, SequencesThatMultiplyTextAreRefused) {
  const Json nine = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaaaaaaa"}};
  const Json json = {{"type", "Sequence"}, {"normalizers", {nine, nine, nine}}};
  EXPECT_THAT(make_normalizer(json, "n").error().message, HasSubstr("256 times longer"));
}

}  // namespace
}  // namespace valora::text
