#include "text/normalizers/unicode_form.h"

#include <gtest/gtest.h>

namespace valora::text {
namespace {

TEST(Nfc, ComposesAndOrdersMarks) {
  const UnicodeNormalizer nfc(UnicodeForm::kNfc);
  EXPECT_EQ(nfc.normalize("plain ½ é"), "plain ½ é");
  EXPECT_EQ(nfc.normalize("e\u0301"), "é");
  EXPECT_EQ(nfc.normalize("\u212B"), "Å");
  EXPECT_EQ(nfc.normalize("q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(nfc.normalize("\u1112\u1161\u11AB"), "한");
  EXPECT_EQ(nfc.normalize("\u0344"), "\u0308\u0301");  // excluded from composition
}

TEST(Nfc, KeepsTheCharacterBeforeTheTrailingConsonants) {
  EXPECT_EQ(UnicodeNormalizer(UnicodeForm::kNfc).normalize("\uAC00\u11A7"), "\uAC00\u11A7");
}

TEST(Nfc, LeavesMarksNewerThanTheReferencesData) {
  // U+1DF6 has class 232 since Unicode 10: newer data would move it after U+0323.
  EXPECT_EQ(UnicodeNormalizer(UnicodeForm::kNfc).normalize("a\u1DF6\u0323"), "a\u1DF6\u0323");
}

TEST(Nfc, OrdersLongRunsOfMarks) {
  // Adjacent swaps would take 10^10 steps here.
  std::string text = "a", above, below;
  for (int i = 0; i < 100'000; ++i) {
    text += "\u0311\u0326";  // classes 230 and 220; `a` composes with the first only
    above += "\u0311";
    below += "\u0326";
  }
  EXPECT_TRUE(UnicodeNormalizer(UnicodeForm::kNfc).normalize(text) ==
              "ȃ" + below + above.substr(2));
}

}  // namespace
}  // namespace valora::text
