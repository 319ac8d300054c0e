#include "media/image/image.h"

#include <random>

#include <gtest/gtest.h>

#include "media/testing/pictures.h"

namespace valora::media {
namespace {

using namespace testing;

Bytes valid_png(int width = 20, int height = 10) { return encode_png(make_picture(width, height)); }

std::vector<Bytes> one_of_each_format() {
  const Image picture = make_picture(70, 40);
  return {encode_jpeg(picture), encode_jpeg(picture, true), encode_png(picture),
          encode_webp(picture), tiny_gif()};
}

TEST(DecodeImage, LosslessFormatsRoundTrip) {
  const Image picture = make_picture(31, 17);
  for (const Bytes& bytes : {encode_png(picture), encode_webp(picture)}) {
    const auto decoded = decode_image(bytes, Limits{});
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_EQ(decoded->width, 31);
    EXPECT_EQ(decoded->height, 17);
    EXPECT_EQ(decoded->rgb, picture.rgb);
  }
  const auto gif = decode_image(tiny_gif(), Limits{});
  ASSERT_TRUE(gif.ok()) << gif.error().message;
  EXPECT_EQ(gif->rgb, (std::vector<uint8_t>{255, 0, 0, 0, 255, 0}));
}

TEST(ImageType, IsThatOfTheDecoder) {
  const Image picture = make_picture(4, 4);
  EXPECT_EQ(image_type(encode_png(picture)), "image/png");
  EXPECT_EQ(image_type(encode_jpeg(picture)), "image/jpeg");
  EXPECT_EQ(image_type(Bytes{'R', 'I', 'F', 'F', 4, 0, 0, 0, 'W', 'A', 'V', 'E'}),
            "application/octet-stream");
  EXPECT_EQ(image_type({}), "application/octet-stream");
}

TEST(DecodeImage, RefusesOtherFormats) {
  const std::string text = "This is a text file and no picture at all.";
  EXPECT_EQ(decode_image(Bytes(text.begin(), text.end()), Limits{}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(decode_image({}, Limits{}).error().code, ErrorCode::kInvalidArgument);
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    Bytes noise(random() % 300);
    for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
    EXPECT_FALSE(decode_image(noise, Limits{}).ok());
  }
}

TEST(DecodeImage, RefusesHugeHeaderBeforeAllocating) {
  Bytes png = png_header(65000, 65000);
  append(png, png_chunk("IDAT", zlib_of_zeros(1000)));
  EXPECT_EQ(decode_image(png, Limits{}).error().code, ErrorCode::kPayloadTooLarge);

  Bytes jpeg = encode_jpeg(make_picture(16, 16));
  const uint8_t frame[] = {0xff, 0xc0, 0, 17, 8};
  const auto at = std::search(jpeg.begin(), jpeg.end(), std::begin(frame), std::end(frame));
  ASSERT_NE(at, jpeg.end());
  std::fill_n(at + 5, 4, uint8_t{0xfe});  // height and width
  EXPECT_EQ(decode_image(jpeg, Limits{}).error().code, ErrorCode::kPayloadTooLarge);

  Bytes gif = tiny_gif();
  std::fill_n(gif.begin() + 6, 4, uint8_t{0xff});
  EXPECT_EQ(decode_image(gif, Limits{}).error().code, ErrorCode::kPayloadTooLarge);
}

TEST(DecodeImage, LimitsHoldInEveryFormat) {
  for (const Bytes& bytes : one_of_each_format()) {
    Limits limits;
    limits.max_pixels = 1;
    EXPECT_EQ(decode_image(bytes, limits).error().code, ErrorCode::kPayloadTooLarge);
    limits = {};
    limits.max_bytes = bytes.size() - 1;
    EXPECT_EQ(decode_image(bytes, limits).error().code, ErrorCode::kPayloadTooLarge);
    limits.max_bytes = bytes.size();
    EXPECT_TRUE(decode_image(bytes, limits).ok());
  }
}

TEST(DecodeImage, RefusesEveryTruncation) {
  for (const Bytes& bytes : one_of_each_format()) {
    // A GIF's last block terminator and trailer come after its pixels.
    const size_t pixels_end = bytes[0] == 'G' ? bytes.size() - 3 : bytes.size() - 1;
    for (size_t size = 0; size <= pixels_end; ++size)
      ASSERT_FALSE(decode_image(std::span(bytes).first(size), Limits{}).ok())
          << bytes.size() << " cut to " << size;
  }
}

TEST(DecodeImage, RefusesJpegWithMissingData) {
  for (const bool progressive : {false, true}) {
    Bytes bytes = encode_jpeg(make_picture(200, 200), progressive);
    bytes.resize(bytes.size() / 2);
    append(bytes, {0xff, 0xd9});  // a valid end marker after half of the data
    EXPECT_FALSE(decode_image(bytes, Limits{}).ok());
  }
}

// Cameras leave out the standard tables of MJPEG.
TEST(DecodeImage, TakesJpegWithoutHuffmanTables) {
  const Bytes whole = encode_jpeg(make_picture(64, 48));
  Bytes bytes(whole.begin(), whole.begin() + 2);
  size_t at = 2;
  int left_out = 0;
  while (whole[at + 1] != 0xda) {
    const size_t length = 2 + size_t{whole[at + 2]} * 256 + whole[at + 3];
    if (whole[at + 1] == 0xc4)
      ++left_out;
    else
      bytes.insert(bytes.end(), whole.begin() + at, whole.begin() + at + length);
    at += length;
  }
  bytes.insert(bytes.end(), whole.begin() + at, whole.end());
  ASSERT_GT(left_out, 0);
  const auto expected = decode_image(whole, Limits{}), decoded = decode_image(bytes, Limits{});
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->rgb, expected->rgb);
}

TEST(DecodeImage, RefusesJpegWithTooManyScans) {
  const Bytes bytes = encode_jpeg(make_picture(64, 64), true);
  const auto marker = [&](size_t from, uint8_t code) {
    while (bytes[from] != 0xff || bytes[from + 1] != code) ++from;
    return bytes.begin() + from;
  };
  // Repeating the first scan, which has the lowest frequencies, is not an error.
  const auto scan = marker(0, 0xda);
  const auto rest = marker(scan - bytes.begin() + 2, 0xc4);
  Bytes many(bytes.begin(), scan);
  for (int i = 0; i < 200; ++i) many.insert(many.end(), scan, rest);
  many.insert(many.end(), rest, bytes.end());
  const auto decoded = decode_image(many, Limits{});
  ASSERT_FALSE(decoded.ok());
  EXPECT_NE(decoded.error().message.find("scans"), std::string::npos) << decoded.error().message;
}

TEST(DecodeImage, PngBombIsNotInflated) {
  const Bytes bomb = zlib_of_zeros(size_t{64} << 20);
  const Bytes plain = valid_png();
  const size_t after_header = 33;  // signature and IHDR
  for (const char* name : {"iCCP", "zTXt", "iTXt"}) {
    Bytes data{'x', 0, 0};
    if (std::string(name) == "iTXt") data = {'x', 0, 1, 0, 0, 0};
    append(data, bomb);
    Bytes bytes(plain.begin(), plain.begin() + after_header);
    append(bytes, png_chunk(name, data));
    bytes.insert(bytes.end(), plain.begin() + after_header, plain.end());
    EXPECT_TRUE(decode_image(bytes, Limits{}).ok()) << name;
  }
  // Excess pixel data, beyond what the header's size needs, is not inflated.
  Bytes bytes = png_header(4, 4);
  append(bytes, png_chunk("IDAT", bomb));
  append(bytes, png_chunk("IEND", {}));
  const auto decoded = decode_image(bytes, Limits{});
  EXPECT_TRUE(!decoded.ok() || decoded->rgb.size() == 48u);
}

TEST(DecodeImage, DamagedFilesNeverCrash) {
  std::mt19937 random(2);
  for (const Bytes& valid : one_of_each_format()) {
    for (int i = 0; i < 400; ++i) {
      Bytes bytes = valid;
      for (int k = 0; k < 1 + i % 6; ++k)
        bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
      const auto decoded = decode_image(bytes, Limits{.max_pixels = 1 << 20});
      EXPECT_TRUE(!decoded.ok() ||
                  decoded->rgb.size() == size_t(decoded->width) * decoded->height * 3);
    }
  }
}

TEST(ResizeBicubic, KeepsFlatColours) {
  Image flat{13, 9, std::vector<uint8_t>(13 * 9 * 3, 77)};
  for (const auto& [width, height] : {std::pair{1, 1}, {200, 3}, {4, 100}, {28, 28}}) {
    const Image resized = resize_bicubic(flat, width, height);
    EXPECT_EQ(resized.rgb, std::vector<uint8_t>(size_t(width) * height * 3, 77));
  }
}

TEST(ResizeBicubic, SameSizeIsUnchanged) {
  const Image picture = make_picture(30, 20);
  EXPECT_EQ(resize_bicubic(picture, 30, 20).rgb, picture.rgb);
}

}  // namespace
}  // namespace valora::media
