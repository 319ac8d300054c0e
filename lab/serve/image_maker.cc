#include "lab/serve/image_maker.h"

#include <cstdio>  // before jpeglib.h, which needs FILE

#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "lab/serve/random.h"

namespace valora::bench {
namespace {

constexpr int kSquare = 16;  // side in pixels
constexpr int kNoise = 24;   // largest deviation of a value from its square's colour

// [height, width, 3]
std::vector<uint8_t> random_pixels(int width, int height, uint64_t seed) {
  Random random(seed);
  const int columns = (width + kSquare - 1) / kSquare, rows = (height + kSquare - 1) / kSquare;
  std::vector<uint8_t> squares(static_cast<size_t>(columns) * rows * 3);
  for (uint8_t& value : squares) value = static_cast<uint8_t>(random.below(256 - kNoise));
  std::vector<uint8_t> pixels(static_cast<size_t>(width) * height * 3);
  uint8_t* out = pixels.data();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const uint8_t* square =
          &squares[static_cast<size_t>(y / kSquare * columns + x / kSquare) * 3];
      const uint64_t noise = random.bits();
      for (int c = 0; c < 3; ++c)
        *out++ = static_cast<uint8_t>(square[c] + (noise >> (20 * c)) % kNoise);
    }
  return pixels;
}

Result<std::string> png_of(const std::vector<uint8_t>& pixels, int width, int height) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  image.flags = PNG_IMAGE_FLAG_FAST;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(size, '\0');
  if (!png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr))
    return internal(std::string("could not encode a PNG image: ") + image.message);
  file.resize(size);
  return file;
}

// libjpeg's default error handler ends the process, but is reached only if memory runs out.
std::string jpeg_of(const std::vector<uint8_t>& pixels, int width, int height) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 85, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(&pixels[size_t{jpeg.next_scanline} * width * 3]);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string file(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return file;
}

std::string base64_of(const std::string& bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace

Result<std::string> random_image_url(const ImageLoad& image, uint64_t seed) {
  const std::vector<uint8_t> pixels = random_pixels(image.width, image.height, seed);
  if (image.format == ImageFormat::kJpeg)
    return "data:image/jpeg;base64," + base64_of(jpeg_of(pixels, image.width, image.height));
  VALORA_TRY(file, png_of(pixels, image.width, image.height));
  return "data:image/png;base64," + base64_of(file);
}

}  // namespace valora::bench
