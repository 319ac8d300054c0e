#include "base/text/unicode.h"

#include <gtest/gtest.h>

namespace valora {
namespace {

TEST(Utf8, ReplacesEachLongestInvalidPrefix) {
  // Tables 3-8 and 3-11 of the Unicode standard: maximal subparts of ill-formed sequences.
  EXPECT_EQ(to_valid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), "��������A");
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), "��������A");
  EXPECT_EQ(to_valid_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), "�����A��B");
  EXPECT_EQ(to_valid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "����A");
  EXPECT_EQ(to_valid_utf8("a\xF0\x9F\x98"), "a�");
  EXPECT_EQ(to_valid_utf8("é字😀"), "é字😀");
}

TEST(Utf8, DistinguishesIncompleteFromInvalid) {
  EXPECT_EQ(decode_utf8("\xF0\x9F\x98").status, Utf8Status::kIncomplete);
  EXPECT_EQ(decode_utf8("\xF0\x9F\x98").length, 3);
  EXPECT_EQ(decode_utf8("\xF0\x9F"
                        "a")
                .status,
            Utf8Status::kInvalid);
  EXPECT_EQ(decode_utf8("\xF0\x9F"
                        "a")
                .length,
            2);
  EXPECT_EQ(decode_utf8("\xE0").status, Utf8Status::kIncomplete);
  EXPECT_EQ(decode_utf8("\xF5").status, Utf8Status::kInvalid);
  EXPECT_EQ(decode_utf8("\xF4\x8F\xBF\xBF").code_point, char32_t{0x10FFFF});
  EXPECT_TRUE(is_valid_utf8("字"));
  EXPECT_FALSE(is_valid_utf8("\xE5\xAD"));
}

TEST(Utf8, AppendsCharacters) {
  std::string out;
  for (const char32_t c : {U'a', U'é', U'字', U'😀'}) append_utf8(out, c);
  EXPECT_EQ(out, "aé字😀");
}

TEST(Unicode, KnowsCategoriesNewerThanItsLibraries) {
  EXPECT_EQ(general_category(U'A'), "Lu");
  EXPECT_EQ(general_category(0x31350), "Lo");  // Unicode 15
  EXPECT_EQ(general_category(0x1C89), "Lu");   // Unicode 16
  EXPECT_EQ(general_category(0x1CCF0), "Nd");
  EXPECT_EQ(general_category(0x323B0), "Cn");
}

TEST(Unicode, ClassifiesForAddedTokensAndDigits) {
  for (const char32_t c : {0x09, 0x0D, 0x20, 0x85, 0xA0, 0x2028, 0x3000})
    EXPECT_TRUE(is_white_space(c)) << uint32_t{c};
  for (const char32_t c : {0x08, 0x0E, 0x180E, 0x200B, 0x2060, 0xFEFF})
    EXPECT_FALSE(is_white_space(c)) << uint32_t{c};
  for (const char32_t c : {U'a', U'_', U'9', U'Ⓐ', U'Ⅷ', char32_t{0x301}, char32_t{0x200D}})
    EXPECT_TRUE(is_word(c));
  for (const char32_t c : {U'-', U'½', U'😀', U' '}) EXPECT_FALSE(is_word(c)) << uint32_t{c};
  for (const char32_t c : {U'7', U'½', U'Ⅷ', U'٣', char32_t{0x11F50}})
    EXPECT_TRUE(is_numeric(c)) << uint32_t{c};
  EXPECT_FALSE(is_numeric(U'五'));
}

}  // namespace
}  // namespace valora
