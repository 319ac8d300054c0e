#include "media/image/orientation.h"

#include <gtest/gtest.h>

namespace valora::media {
namespace {

using Bytes = std::vector<uint8_t>;

// A little-endian TIFF block with one directory of one entry.
Bytes tiff(uint16_t tag, uint16_t type, uint32_t count, uint32_t value) {
  Bytes bytes{'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0};
  const auto add = [&](uint32_t number, int size) {
    for (int i = 0; i < size; ++i) bytes.push_back(uint8_t(number >> (8 * i)));
  };
  add(tag, 2), add(type, 2), add(count, 4), add(value, 4);
  return bytes;
}

TEST(Orientation, ReadsExif) {
  EXPECT_EQ(exif_orientation(tiff(0x112, 3, 1, 6)), 6);
  EXPECT_EQ(exif_orientation(tiff(0x112, 4, 1, 8)), 8);
  EXPECT_EQ(exif_orientation(tiff(0x111, 3, 1, 6)), std::nullopt) << "another tag";
  EXPECT_EQ(exif_orientation(tiff(0x112, 2, 1, 6)), std::nullopt) << "text";
  EXPECT_EQ(exif_orientation(tiff(0x112, 3, 2, 6)), std::nullopt) << "a list";
}

TEST(Orientation, IgnoresBrokenExif) {
  const Bytes whole = tiff(0x112, 3, 1, 6);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(exif_orientation(std::span(whole).first(size)), std::nullopt) << size;
  Bytes far = whole;
  std::fill_n(far.begin() + 4, 4, uint8_t{0xff});  // the directory's offset
  EXPECT_EQ(exif_orientation(far), std::nullopt);
  Bytes many = tiff(0x111, 3, 1, 6);
  many[8] = many[9] = 0xff;  // more entries than the block contains
  EXPECT_EQ(exif_orientation(many), std::nullopt);
}

TEST(Orientation, ExifTakesPrecedenceOverXmp) {
  const std::string xmp = R"(<d xmlns:tiff="x" tiff:Orientation="3"/>)";
  EXPECT_EQ(xmp_orientation(xmp), 3);
  EXPECT_EQ(xmp_orientation("<tiff:Orientation>8</tiff:Orientation>"), 8);
  EXPECT_EQ(xmp_orientation("tiff:Orientation=3 tiff:Orientation="), std::nullopt);
  EXPECT_EQ(orientation_of(tiff(0x112, 3, 1, 6), xmp), 6);
  EXPECT_EQ(orientation_of({}, xmp), 3);
  EXPECT_EQ(orientation_of({}, ""), 1);
}

TEST(Orientation, AppliesEveryExifOrientation) {
  // a b c
  // d e f
  Image image{3, 2, {}};
  for (const char c : std::string("abcdef")) image.rgb.insert(image.rgb.end(), 3, uint8_t(c));
  const auto turned = [&](int orientation) {
    const Image out = upright(image, orientation);
    std::string rows;
    for (int y = 0; y < out.height; ++y) {
      for (int x = 0; x < out.width; ++x) rows += char(out.rgb[(y * out.width + x) * 3]);
      rows += '/';
    }
    return rows;
  };
  EXPECT_EQ(turned(1), "abc/def/");
  EXPECT_EQ(turned(2), "cba/fed/");
  EXPECT_EQ(turned(3), "fed/cba/");
  EXPECT_EQ(turned(4), "def/abc/");
  EXPECT_EQ(turned(5), "ad/be/cf/");
  EXPECT_EQ(turned(6), "da/eb/fc/");
  EXPECT_EQ(turned(7), "fc/eb/da/");
  EXPECT_EQ(turned(8), "cf/be/ad/");
  EXPECT_EQ(turned(9), "abc/def/");
}

}  // namespace
}  // namespace valora::media
