#include "base/text/base64.h"

#include <gtest/gtest.h>

namespace valora {
namespace {

using Bytes = std::vector<uint8_t>;

std::string text(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

TEST(Base64, DecodesTheStandardAlphabet) {
  EXPECT_EQ(text(*decode_base64("")), "");
  EXPECT_EQ(text(*decode_base64("Zg==")), "f");
  EXPECT_EQ(text(*decode_base64("Zm8=")), "fo");
  EXPECT_EQ(text(*decode_base64("Zm9vYmFy")), "foobar");
  EXPECT_EQ(*decode_base64("+/+/"), (Bytes{0xfb, 0xff, 0xbf}));
  EXPECT_EQ(text(*decode_base64("Zm8")), "fo") << "missing padding";
  EXPECT_EQ(text(*decode_base64(" Zm9v\r\nYm Fy\n")), "foobar") << "white space";
}

TEST(Base64, RefusesMalformedText) {
  for (const char* wrong :
       {"Z", "Zm9vY", "Zg=", "Zg===", "Zg==Zg==", "Zm9v=", "====", "Zm-_", "Zm9v!", "Zm\xc3\xa9v"})
    EXPECT_FALSE(decode_base64(wrong).ok()) << wrong;
}

TEST(Base64, RoundTrips) {
  EXPECT_EQ(encode_base64(""), "");
  EXPECT_EQ(encode_base64("f"), "Zg==");
  EXPECT_EQ(encode_base64("fo"), "Zm8=");
  EXPECT_EQ(encode_base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encode_base64("\xfb\xff\xbf"), "+/+/");
}

}  // namespace
}  // namespace valora
