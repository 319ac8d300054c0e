// Pictures for unit tests, drawn and encoded here so that no binary files are committed.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <jpeglib.h>
#include <png.h>
#include <webp/encode.h>
#include <zlib.h>

#include "media/fetch/fetch.h"
#include "media/image/image.h"

namespace valora::media::testing {

// Smooth gradients that vary with `seed`.
inline Image make_picture(int width, int height, int seed = 0) {
  Image image{width, height, std::vector<uint8_t>(size_t(width) * height * 3)};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        image.rgb[(size_t(y) * width + x) * 3 + c] =
            static_cast<uint8_t>(x * (c + 1) + y * 3 + seed * 17);
  return image;
}

inline Bytes encode_png(const Image& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = image.width;
  png.height = image.height;
  png.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  Bytes bytes(size);
  if (!png_image_write_to_memory(&png, bytes.data(), &size, 0, image.rgb.data(), 0, nullptr))
    std::abort();
  bytes.resize(size);
  return bytes;
}

inline Bytes encode_jpeg(const Image& image, bool progressive = false) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &data, &size);
  info.image_width = image.width;
  info.image_height = image.height;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<uint8_t*>(&image.rgb[size_t(info.next_scanline) * image.width * 3]);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Bytes bytes(data, data + size);
  std::free(data);
  return bytes;
}

inline Bytes encode_webp(const Image& image) {
  uint8_t* data = nullptr;
  const size_t size =
      WebPEncodeLosslessRGB(image.rgb.data(), image.width, image.height, image.width * 3, &data);
  Bytes bytes(data, data + size);
  WebPFree(data);
  return bytes;
}

inline void append(Bytes& to, const Bytes& bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

inline void append_big_endian(Bytes& to, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(uint8_t(value >> shift));
}

inline Bytes png_chunk(const char* type, const Bytes& data) {
  Bytes named(type, type + 4);
  append(named, data);
  Bytes chunk;
  append_big_endian(chunk, static_cast<uint32_t>(data.size()));
  append(chunk, named);
  append_big_endian(chunk,
                    static_cast<uint32_t>(crc32(0, named.data(), static_cast<uInt>(named.size()))));
  return chunk;
}

// Signature and IHDR of an 8-bit RGB PNG.
inline Bytes png_header(uint32_t width, uint32_t height) {
  Bytes bytes{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  Bytes header;
  append_big_endian(header, width);
  append_big_endian(header, height);
  append(header, {8, 2, 0, 0, 0});
  append(bytes, png_chunk("IHDR", header));
  return bytes;
}

inline Bytes zlib_of_zeros(size_t count) {
  const Bytes zeros(count);
  uLongf size = compressBound(static_cast<uLong>(count));
  Bytes packed(size);
  compress(packed.data(), &size, zeros.data(), static_cast<uLong>(count));
  packed.resize(size);
  return packed;
}

// A GIF of 2 x 1 pixels, red and green.
inline Bytes tiny_gif() {
  Bytes bytes{'G', 'I', 'F', '8', '9', 'a', 2, 0, 1, 0, 0x80, 0, 0, 255, 0, 0, 0, 255, 0};
  // One frame that covers the screen; codes of 3 bits: clear, 0, 1, end.
  append(bytes, {',', 0, 0, 0, 0, 2, 0, 1, 0, 0, 2, 2, 0b01000100, 0b00001010, 0, ';'});
  return bytes;
}

inline std::string base64(const Bytes& bytes) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (i + k < bytes.size() ? bytes[i + k] : 0);
    for (size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? kAlphabet[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace valora::media::testing
