#include <gtest/gtest.h>

#include "media/image/image.h"
#include "media/testing/pictures.h"

namespace valora::media {
namespace {

using namespace testing;

// Inserts an EXIF block that holds only the orientation after a JPEG's first marker.
Bytes oriented_jpeg(int width, int height, uint8_t orientation) {
  Bytes jpeg = encode_jpeg(make_picture(width, height));
  const Bytes app1{0xFF, 0xE1, 0, 34, 'E', 'x',         'i', 'f', 0,    0,    'M', 'M',
                   0,    42,   0, 0,  0,   8,           0,   1,   0x01, 0x12, 0,   3,
                   0,    0,    0, 1,  0,   orientation, 0,   0,   0,    0,    0,   0};
  jpeg.insert(jpeg.begin() + 2, app1.begin(), app1.end());
  return jpeg;
}

TEST(ImageSize, EqualsDecodedSizeInEveryFormat) {
  const Image picture = make_picture(70, 40);
  for (const Bytes& bytes :
       {encode_jpeg(picture), encode_jpeg(picture, true), encode_png(picture), encode_webp(picture),
        tiny_gif(), oriented_jpeg(30, 20, 6), oriented_jpeg(30, 20, 3)}) {
    const auto size = image_size(bytes, Limits{});
    const auto decoded = decode_image(bytes, Limits{});
    ASSERT_TRUE(size.ok() && decoded.ok());
    EXPECT_EQ(size->width, decoded->width);
    EXPECT_EQ(size->height, decoded->height);
  }
  EXPECT_EQ(image_size(oriented_jpeg(30, 20, 6), Limits{})->width, 20);
}

TEST(ImageSize, NeedsOnlyHeader) {
  Bytes png = encode_png(make_picture(70, 40));
  png.resize(100);
  ASSERT_FALSE(decode_image(png, Limits{}).ok());
  const auto size = image_size(png, Limits{});
  ASSERT_TRUE(size.ok()) << size.error().message;
  EXPECT_EQ(size->height, 40);
}

TEST(ImageSize, RefusesForeignBytesAndSizesOverTheLimit) {
  EXPECT_EQ(image_size({}, Limits{}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(image_size(Bytes{'t', 'e', 'x', 't'}, Limits{}).error().code,
            ErrorCode::kInvalidArgument);
  for (const Bytes& bytes : {encode_jpeg(make_picture(70, 40)), encode_png(make_picture(70, 40)),
                             encode_webp(make_picture(70, 40)), tiny_gif()})
    EXPECT_EQ(image_size(bytes, Limits{.max_pixels = 1}).error().code, ErrorCode::kPayloadTooLarge);
}

}  // namespace
}  // namespace valora::media
